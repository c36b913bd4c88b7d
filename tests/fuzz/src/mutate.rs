//! Inputs made of seeds, where no libFuzzer is: repeatable from a number.

/// A stream of numbers: SplitMix64, which is short and has no bad start.
pub struct Numbers(u64);

impl Numbers {
    /// From this number.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    /// A seed with some changes; parts of other seeds among them. Empty without seeds.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if seeds.is_empty() {
            return Vec::new();
        }
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.below(input.len() + 1);
            match self.below(6) {
                0 if at < input.len() => input[at] ^= 1 << self.below(8),
                1 if at < input.len() => input[at] = b" \"'{}[]:,-/\\\n0"[self.below(14)],
                2 => {
                    let end = (at + self.below(16)).min(input.len());
                    input.drain(at..end);
                }
                3 => {
                    let end = (at + self.below(32)).min(input.len());
                    let copy = input[at..end].to_vec();
                    let to = self.below(input.len() + 1);
                    input.splice(to..to, copy);
                }
                4 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let end = (from + self.below(48)).min(other.len());
                    input.splice(at..at, other[from..end].iter().copied());
                }
                _ => input.truncate(at),
            }
        }
        input
    }
}
