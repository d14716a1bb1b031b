//! Colours, emphasis and glyphs, by what they mean.
//!
//! Everything that colour says is said a second time: by a letter, a mark or a word. So the screen reads the same in
//! sixteen colours, without any (`NO_COLOR`), and in ASCII.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// 256 or more.
    Many,
    /// The sixteen that the terminal's own scheme defines.
    Sixteen,
    /// None: emphasis only.
    None,
}

/// What is behind the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Light text on dark.
    Dark,
    /// Dark text on light.
    Light,
}

/// What a piece of text means; the theme decides what that looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Of lesser importance.
    Dim,
    /// A heading or column title.
    Heading,
    /// Something to act on: a key, a link.
    Accent,
    /// Worth knowing.
    Note,
    /// Likely to go wrong.
    Warning,
    /// Failed.
    Error,
    /// Went well.
    Good,
    /// Belongs to the toolkit at this position of the report.
    Toolkit(usize),
}

/// The look of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours of the terminal.
    pub depth: Depth,
    /// What is behind the text.
    pub ground: Ground,
    /// Box drawing and other characters beyond ASCII can be shown.
    pub unicode: bool,
}

impl Default for Theme {
    fn default() -> Self {
        Theme {
            depth: Depth::Many,
            ground: Ground::Dark,
            unicode: true,
        }
    }
}

/// Colours of toolkits on dark: the first is calm, the others stand out from it and from each other.
const TOOLKITS_DARK: [u8; 8] = [79, 214, 177, 81, 204, 185, 111, 209];
const TOOLKITS_LIGHT: [u8; 8] = [29, 166, 91, 31, 161, 100, 26, 130];
const TOOLKITS_SIXTEEN: [Color; 6] = [
    Color::Green,
    Color::Yellow,
    Color::Magenta,
    Color::Cyan,
    Color::Blue,
    Color::LightRed,
];

impl Theme {
    /// The look that a terminal's environment asks for; `variable` reads one variable, `settings` are the words of a
    /// file.
    ///
    /// `NO_COLOR`, `TERM`, `COLORTERM`, `COLORFGBG` and the locale decide; the file and then `JITTRACE_THEME` override
    /// them with [`Theme::WORDS`].
    pub fn from_environment(settings: &str, variable: impl Fn(&str) -> Option<String>) -> Theme {
        let set = |name: &str| variable(name).filter(|v| !v.is_empty());
        let term = set("TERM").unwrap_or_default();
        let mut theme = Theme::default();
        if set("NO_COLOR").is_some() || term == "dumb" || term.starts_with("vt1") {
            theme.depth = Depth::None;
        } else if set("COLORTERM").is_none()
            && !term.contains("256color")
            && !term.contains("kitty")
            && !term.contains("alacritty")
            && !term.contains("direct")
        {
            theme.depth = Depth::Sixteen;
        }
        // `15;0`: foreground, then background; 7 and 9 to 15 are light grounds.
        if let Some(ground) =
            set("COLORFGBG").and_then(|v| v.rsplit(';').next()?.parse::<u8>().ok())
            && (ground == 7 || ground >= 9)
        {
            theme.ground = Ground::Light;
        }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|n| set(n));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        theme.unicode = (locale.contains("utf-8") || locale.contains("utf8")) && term != "linux";
        // NO_COLOR is a wish of the moment, a file one of long standing.
        let plain = theme.depth == Depth::None;
        theme = theme.dressed(settings).unwrap_or(theme);
        if plain {
            theme.depth = Depth::None;
        }
        let words = set("JITTRACE_THEME").unwrap_or_default();
        for word in words.split([',', ' ']) {
            theme = theme.dressed(word).unwrap_or(theme);
        }
        theme
    }

    /// The words that change a look.
    pub const WORDS: [&'static str; 7] = ["dark", "light", "256", "16", "none", "ascii", "unicode"];

    /// The look with some of the [`Theme::WORDS`] applied, separated by commas or spaces.
    ///
    /// # Errors
    /// The first word that is none of them.
    pub fn dressed(mut self, words: &str) -> Result<Theme, &str> {
        for word in words.split([',', ' ']) {
            match word {
                "dark" => self.ground = Ground::Dark,
                "light" => self.ground = Ground::Light,
                "256" => self.depth = Depth::Many,
                "16" => self.depth = Depth::Sixteen,
                "none" => self.depth = Depth::None,
                "ascii" => self.unicode = false,
                "unicode" => self.unicode = true,
                "" => {}
                other => return Err(other),
            }
        }
        Ok(self)
    }

    /// The next look, for the key that goes through them.
    pub fn next(self) -> Theme {
        let (depth, ground) = match (self.depth, self.ground) {
            (Depth::Many, Ground::Dark) => (Depth::Many, Ground::Light),
            (Depth::Many, Ground::Light) => (Depth::Sixteen, Ground::Dark),
            (Depth::Sixteen, Ground::Dark) => (Depth::Sixteen, Ground::Light),
            (Depth::Sixteen, Ground::Light) => (Depth::None, Ground::Dark),
            (Depth::None, _) => (Depth::Many, Ground::Dark),
        };
        Theme {
            depth,
            ground,
            ..self
        }
    }

    /// What the look is called.
    pub fn name(self) -> &'static str {
        match (self.depth, self.ground) {
            (Depth::Many, Ground::Dark) => "dark",
            (Depth::Many, Ground::Light) => "light",
            (Depth::Sixteen, Ground::Dark) => "16 colours, dark",
            (Depth::Sixteen, Ground::Light) => "16 colours, light",
            (Depth::None, _) => "no colour",
        }
    }

    fn pick(self, dark: u8, light: u8, sixteen: Color) -> Style {
        match (self.depth, self.ground) {
            (Depth::Many, Ground::Dark) => Style::new().fg(Color::Indexed(dark)),
            (Depth::Many, Ground::Light) => Style::new().fg(Color::Indexed(light)),
            (Depth::Sixteen, _) => Style::new().fg(sixteen),
            (Depth::None, _) => Style::new(),
        }
    }

    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Dim => match self.depth {
                Depth::None => Style::new().add_modifier(Modifier::DIM),
                _ => self.pick(244, 243, Color::DarkGray),
            },
            Tone::Heading => Style::new().add_modifier(Modifier::BOLD),
            Tone::Accent => self.pick(75, 26, Color::Cyan).add_modifier(Modifier::BOLD),
            Tone::Note => self.pick(110, 25, Color::Blue),
            Tone::Warning => self
                .pick(221, 130, Color::Yellow)
                .add_modifier(Modifier::BOLD),
            Tone::Error => self.pick(203, 160, Color::Red).add_modifier(Modifier::BOLD),
            Tone::Good => self.pick(114, 28, Color::Green),
            Tone::Toolkit(at) => {
                let style = match (self.depth, self.ground) {
                    (Depth::Many, Ground::Dark) => {
                        Style::new().fg(Color::Indexed(pick(&TOOLKITS_DARK, at).unwrap_or(79)))
                    }
                    (Depth::Many, Ground::Light) => {
                        Style::new().fg(Color::Indexed(pick(&TOOLKITS_LIGHT, at).unwrap_or(29)))
                    }
                    (Depth::Sixteen, _) => {
                        Style::new().fg(pick(&TOOLKITS_SIXTEEN, at).unwrap_or(Color::Green))
                    }
                    (Depth::None, _) => Style::new(),
                };
                // Without colours a stranger still stands out.
                match (self.depth, at) {
                    (Depth::None, 1..) => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                    _ => style,
                }
            }
        }
    }

    /// The style of the selected row or cell; `focused` when keys go there.
    pub fn selection(self, focused: bool) -> Style {
        match (self.depth, self.ground, focused) {
            (Depth::Many, Ground::Dark, true) => Style::new().bg(Color::Indexed(238)),
            (Depth::Many, Ground::Dark, false) => Style::new().bg(Color::Indexed(236)),
            (Depth::Many, Ground::Light, true) => Style::new().bg(Color::Indexed(252)),
            (Depth::Many, Ground::Light, false) => Style::new().bg(Color::Indexed(255)),
            (_, _, true) => Style::new().add_modifier(Modifier::REVERSED),
            (_, _, false) => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// The style of a piece of the selected row: with few colours the row has one look, since what stands in colours of
    /// its own would be a patchwork where everything is reversed.
    pub fn selected(self, piece: Style, focused: bool) -> Style {
        let selection = self.selection(focused);
        match self.depth {
            Depth::Many => selection.patch(piece),
            Depth::Sixteen | Depth::None => {
                let mut piece = piece;
                if focused {
                    (piece.fg, piece.bg) = (None, None);
                }
                selection.patch(piece)
            }
        }
    }

    /// The style of the cell that is selected within the selected row.
    pub fn cell(self) -> Style {
        match (self.depth, self.ground) {
            (Depth::Many, Ground::Dark) => Style::new()
                .bg(Color::Indexed(24))
                .add_modifier(Modifier::BOLD),
            (Depth::Many, Ground::Light) => Style::new()
                .bg(Color::Indexed(153))
                .add_modifier(Modifier::BOLD),
            _ => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        }
    }

    /// The style of text that the search found.
    pub fn found(self) -> Style {
        match self.depth {
            Depth::Many => Style::new().fg(Color::Indexed(16)).bg(Color::Indexed(222)),
            Depth::Sixteen => Style::new().fg(Color::Black).bg(Color::Yellow),
            Depth::None => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// The style of the tab in front.
    pub fn tab(self) -> Style {
        match (self.depth, self.ground) {
            (Depth::Many, Ground::Dark) => Style::new()
                .fg(Color::Indexed(16))
                .bg(Color::Indexed(75))
                .add_modifier(Modifier::BOLD),
            (Depth::Many, Ground::Light) => Style::new()
                .fg(Color::Indexed(231))
                .bg(Color::Indexed(26))
                .add_modifier(Modifier::BOLD),
            _ => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        }
    }

    /// Marks that a text was cut.
    pub fn ellipsis(self) -> &'static str {
        if self.unicode { "…" } else { ".." }
    }

    /// Marks two values that disagree.
    pub fn differs(self) -> &'static str {
        if self.unicode { "≠" } else { "!" }
    }

    /// Nothing was resolved here.
    pub fn nothing(self) -> &'static str {
        if self.unicode { "·" } else { "-" }
    }

    /// Something lies further on.
    pub fn onward(self) -> &'static str {
        if self.unicode { "›" } else { ">" }
    }

    /// Points at what caused the thing above.
    pub fn arrow(self) -> &'static str {
        if self.unicode { "←" } else { "<-" }
    }

    /// A folded, an unfolded row, a row without anything below it.
    pub fn fold(self, children: bool, folded: bool) -> &'static str {
        match (children, folded, self.unicode) {
            (false, _, _) => " ",
            (true, true, true) => "▸",
            (true, false, true) => "▾",
            (true, true, false) => "+",
            (true, false, false) => "-",
        }
    }

    /// A filled bar, a bar that is still growing, a failed bar.
    pub fn bar(self) -> [&'static str; 3] {
        if self.unicode {
            ["█", "▒", "█"]
        } else {
            ["#", ">", "x"]
        }
    }

    /// A dot of state.
    pub fn dot(self) -> &'static str {
        if self.unicode { "●" } else { "*" }
    }

    /// Separates short pieces on one line.
    pub fn separator(self) -> &'static str {
        if self.unicode { " · " } else { " | " }
    }

    /// The vertical line between panes.
    pub fn vertical(self) -> &'static str {
        if self.unicode { "│" } else { "|" }
    }

    /// The horizontal line between panes.
    pub fn horizontal(self) -> &'static str {
        if self.unicode { "─" } else { "-" }
    }

    /// Characters that this terminal may not have are replaced.
    pub fn glyphs<'a>(self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.unicode || text.is_ascii() {
            return text.into();
        }
        text.chars()
            .map(|c| match c {
                'µ' => 'u',
                '→' | '▸' => '>',
                '←' => '<',
                '·' | '–' | '—' => '-',
                '≥' => '>',
                '…' => '.',
                '×' => 'x',
                c if c.is_ascii() => c,
                _ => '?',
            })
            .collect::<String>()
            .into()
    }
}

fn pick<T: Copy>(from: &[T], at: usize) -> Option<T> {
    from.get(at % from.len().max(1)).copied()
}

/// The letter by which a toolkit is known where colours are not seen: A to Z, then `?`.
pub fn letter(toolkit: usize) -> char {
    u8::try_from(toolkit)
        .ok()
        .filter(|&at| at < 26)
        .map_or('?', |at| char::from(b'A' + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(pairs: &[(&str, &str)]) -> Theme {
        Theme::from_environment("", |name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_environment_decides_the_look() {
        let many = theme(&[("TERM", "xterm-256color"), ("LANG", "C.UTF-8")]);
        assert_eq!((many.depth, many.unicode), (Depth::Many, true));
        let none = theme(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]);
        assert_eq!((none.depth, none.unicode), (Depth::None, false));
        assert_eq!(theme(&[("TERM", "xterm")]).depth, Depth::Sixteen);
        assert_eq!(theme(&[("COLORFGBG", "0;15")]).ground, Ground::Light);
        let forced = theme(&[("NO_COLOR", "1"), ("JITTRACE_THEME", "256,light,unicode")]);
        assert_eq!(
            (forced.depth, forced.ground, forced.unicode),
            (Depth::Many, Ground::Light, true)
        );
    }

    #[test]
    fn every_tone_differs_from_plain_without_colours_where_it_matters() {
        let bare = Theme {
            depth: Depth::None,
            ..Theme::default()
        };
        for tone in [Tone::Error, Tone::Warning, Tone::Accent, Tone::Toolkit(1)] {
            assert_ne!(bare.style(tone), Style::new(), "{tone:?}");
        }
    }
}
