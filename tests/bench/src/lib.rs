//! The benches' package. Everything is in `benches/ratios`: start reading at its `main.rs`.
