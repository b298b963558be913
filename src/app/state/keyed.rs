//! A list of rows whose values change one by one: a new value touches one row, not the list.

use leptos::prelude::*;

/// A row: its key, and its value as a signal.
#[derive(Clone)]
pub struct Row<K, V> {
    pub key: K,
    pub value: ArcRwSignal<V>,
}

/// A keyed list of rows. Cheap to clone.
#[derive(Clone)]
pub struct Keyed<K, V> {
    rows: ArcRwSignal<Vec<Row<K, V>>>,
}

impl<K, V> Keyed<K, V>
where
    K: Clone + PartialEq + Send + Sync + 'static,
    V: Clone + PartialEq + Send + Sync + 'static,
{
    #[must_use]
    pub fn new(items: impl IntoIterator<Item = (K, V)>) -> Self {
        let rows = items.into_iter().map(|(key, value)| Row { key, value: ArcRwSignal::new(value) }).collect();
        Self { rows: ArcRwSignal::new(rows) }
    }

    /// The rows; whoever reads them is told when a row comes or goes, not when a value changes.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<K, V>> {
        self.rows.get()
    }

    /// Makes the list hold `items`: rows keep their signals by key, and a value that is as before touches nobody.
    pub fn sync(&self, items: impl IntoIterator<Item = (K, V)>) {
        let old = self.rows.get_untracked();
        let mut changed = false;
        let mut rows = Vec::with_capacity(old.len());
        for (place, (key, value)) in items.into_iter().enumerate() {
            let kept = old.get(place).filter(|row| row.key == key).or_else(|| old.iter().find(|row| row.key == key));
            if let Some(row) = kept {
                if *row.value.read_untracked() != value {
                    row.value.set(value);
                }
                rows.push(row.clone());
            } else {
                changed = true;
                rows.push(Row { key, value: ArcRwSignal::new(value) });
            }
        }
        let moved = rows.iter().zip(&old).any(|(new, old)| new.key != old.key);
        if changed || moved || rows.len() != old.len() {
            self.rows.set(rows);
        }
    }
}
