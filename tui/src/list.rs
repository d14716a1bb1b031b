//! A selection in a list of any length, of which only a window is ever looked at.

/// Which row is selected, and which is the first one shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    /// The selected row.
    pub selected: usize,
    /// The first row shown.
    pub offset: usize,
}

impl List {
    /// Keeps the selection within the list and within the window.
    pub fn settle(&mut self, count: usize, height: usize) {
        self.selected = self.selected.min(count.saturating_sub(1));
        if self.selected < self.offset {
            self.offset = self.selected;
        }
        if height > 0 && self.selected >= self.offset + height {
            self.offset = self.selected + 1 - height;
        }
        self.offset = self.offset.min(count.saturating_sub(height.max(1)));
    }

    /// Moves the selection by rows.
    pub fn step(&mut self, by: isize, count: usize) {
        self.selected = self
            .selected
            .saturating_add_signed(by)
            .min(count.saturating_sub(1));
    }

    /// Moves the window, and the selection as far as it must go with it.
    pub fn scroll(&mut self, by: isize, count: usize, height: usize) {
        let last = count.saturating_sub(height);
        self.offset = self.offset.saturating_add_signed(by).min(last);
        let end = self.offset + height.saturating_sub(1);
        self.selected = self.selected.clamp(self.offset, end.max(self.offset));
        self.selected = self.selected.min(count.saturating_sub(1));
    }

    /// The rows that are shown.
    pub fn window(&self, count: usize, height: usize) -> std::ops::Range<usize> {
        self.offset.min(count)..(self.offset + height).min(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_selection_is_always_shown(
            steps in prop::collection::vec((-50_isize..50, 0_usize..60, 1_usize..20, any::<bool>()), 1..40)
        ) {
            let mut list = List::default();
            for (by, count, height, scroll) in steps {
                if scroll { list.scroll(by, count, height) } else { list.step(by, count) }
                list.settle(count, height);
                if count > 0 {
                    prop_assert!(list.window(count, height).contains(&list.selected));
                }
            }
        }
    }
}
