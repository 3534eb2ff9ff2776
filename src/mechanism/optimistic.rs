//! Optimistic concurrency: many read one record, work, and write it back; whoever finds at the end
//! that another has written meanwhile has worked for nothing, and is told so.
//!
//! There is one record a tier. It is read when service begins, and written when it ends, so the
//! attempts that overlap an end of service are in conflict with it. Each conflict makes a client
//! come back, and the more come back together, the more conflicts there are.
//!
//! Source: H. T. Kung & J. T. Robinson, *On optimistic methods for concurrency control*, ACM
//! Transactions on Database Systems 6 (1981).

/// How often the record has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(u32);

impl Version {
    /// Writes the record that was read at `read`; false, and nothing is written, when another has
    /// written meanwhile. Wraps after four thousand million writes, more than overlap any attempt.
    pub fn commit(&mut self, read: Version) -> bool {
        let unchanged = *self == read;
        self.0 = self.0.wrapping_add(u32::from(unchanged));
        unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_overlap_the_first_wins() {
        let mut record = Version::default();
        let (first, second) = (record, record);
        assert!(record.commit(first));
        assert!(!record.commit(second));
        let again = record;
        assert!(record.commit(again));
    }
}
