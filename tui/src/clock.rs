//! Moments: seconds since the trace began, or the time of day, which is what the logs of everything else tell.

use crate::text;

/// How the moments in lists are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Times {
    /// Seconds since the trace began.
    #[default]
    SinceStart,
    /// Time of day.
    Clock,
}

impl Times {
    /// Both of them.
    pub const ALL: [Times; 2] = [Times::SinceStart, Times::Clock];

    /// What it is called in a file of settings.
    pub fn name(self) -> &'static str {
        match self {
            Times::SinceStart => "since-start",
            Times::Clock => "clock",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Times> {
        Times::ALL.into_iter().find(|times| times.name() == name)
    }

    /// The other one.
    pub fn other(self) -> Times {
        match self {
            Times::SinceStart => Times::Clock,
            Times::Clock => Times::SinceStart,
        }
    }
}

/// The clock by which a trace's moments are times of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds since 1970 in UTC when the trace began.
    began: u64,
    /// Seconds that the place of whoever looks is ahead of UTC.
    ahead: i32,
}

/// Columns of a time of day: `14:03:22.123`.
pub const TIME: usize = 12;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

impl Clock {
    /// The clock of a trace; none where the trace does not say when it began. `ahead`: seconds that the clock of whoever
    /// looks is ahead of UTC.
    pub fn of(started_unix_ns: u64, ahead: i32) -> Option<Clock> {
        (started_unix_ns > 0).then_some(Clock {
            began: started_unix_ns,
            ahead,
        })
    }

    /// Seconds since 1970 by the clock on the wall, and the milliseconds within the second.
    fn wall(self, t: u64) -> (i64, i64) {
        let ns = i64::try_from(self.began.saturating_add(t)).unwrap_or(i64::MAX);
        let seconds = ns / SECOND + i64::from(self.ahead);
        (seconds, ns % SECOND / 1_000_000)
    }

    /// The time of day at a moment of the trace: `14:03:22.123`.
    pub fn time(self, t: u64) -> String {
        let (seconds, milliseconds) = self.wall(t);
        let of_day = seconds.rem_euclid(DAY);
        let (hours, minutes) = (of_day / 3600, of_day / 60 % 60);
        format!(
            "{hours:02}:{minutes:02}:{:02}.{milliseconds:03}",
            of_day % 60
        )
    }

    /// The same with the day and the zone: `2026-11-29 14:03:22.123 +01:00`.
    pub fn date_time(self, t: u64) -> String {
        let (seconds, _) = self.wall(t);
        let (year, month, day) = date(seconds.div_euclid(DAY));
        format!(
            "{year}-{month:02}-{day:02} {} {}",
            self.time(t),
            self.zone()
        )
    }

    /// What the clock is ahead of UTC: `+01:00`.
    pub fn zone(self) -> String {
        if self.ahead == 0 {
            return "UTC".to_owned();
        }
        let sign = if self.ahead < 0 { '-' } else { '+' };
        let minutes = self.ahead.unsigned_abs() / 60;
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// Year, month and day of a day that is counted from 1970 in the Gregorian calendar.
fn date(days: i64) -> (i64, i64, i64) {
    // 400 years have the same days again; within them the years are counted from March, so that the leap day is the last.
    const ERA: i64 = 146_097;
    let since_march_0 = days + 719_468;
    let (era, of_era) = (since_march_0.div_euclid(ERA), since_march_0.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// A moment of a trace: by the clock where there is one and it is asked for.
pub fn moment(t: u64, clock: Option<Clock>) -> String {
    clock.map_or_else(|| text::moment(t), |clock| clock.time(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_of_day_wherever_one_is() {
        // 2024-02-29 23:59:58.500 UTC
        let began = 1_709_251_198_500_000_000;
        for (ahead, t, told) in [
            (0, 0, "2024-02-29 23:59:58.500 UTC"),
            (0, 1_500_000_000, "2024-03-01 00:00:00.000 UTC"),
            (19_800, 0, "2024-03-01 05:29:58.500 +05:30"),
            (
                -12_600,
                86_400_000_000_000,
                "2024-03-01 20:29:58.500 -03:30",
            ),
        ] {
            let clock = Clock::of(began, ahead).unwrap();
            assert_eq!(clock.date_time(t), told);
        }
        assert_eq!(Clock::of(0, 3600), None);
    }

    #[test]
    fn every_day_has_its_date() {
        for (days, told) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_786, (2026, 11, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), told, "{days}");
        }
    }
}
