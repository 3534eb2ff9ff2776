//! What became of the clients of a herd: how many are through by when, and after how many attempts.

use crate::kernel::{Span, Time};

/// Shares of the clients whose time is noted.
pub const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

/// Names of the figures of a herd.
pub const FIGURES: [&str; 16] = [
    "through_share",
    "lost_share",
    "through_50_s",
    "through_90_s",
    "through_99_s",
    "through_all_s",
    "sent",
    "ghosts",
    "peak_per_s",
    "attempts_mean",
    "attempts_p50",
    "attempts_p90",
    "attempts_p99",
    "attempts_max",
    "backoff_max",
    "longest_wait_s",
];

/// A herd in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Herd {
    /// How many clients there are.
    pub clients: u64,
    /// Of these, answered well.
    pub through: u64,
    /// Of these, given up, by their own rule or by leaving.
    pub lost: u64,
    /// When each of [`SHARES`], and last the share that counts as healthy, was through.
    pub times: [Option<Time>; SHARES.len() + 1],
    marks: [u64; SHARES.len() + 1],
    /// The mark that comes next, so that most answers compare one number.
    next: u64,
    /// By number of attempts, the clients that needed, or have made, so many; from the end of the
    /// run on.
    pub attempts: Vec<u64>,
    /// By client, its attempts so far.
    tries: Vec<u32>,
    /// Calls in back-off now.
    waiting: u64,
    /// Most calls that were in back-off at once.
    pub most_waiting: u64,
    /// The longest that a client waited for its answer, or for giving up.
    pub longest: Span,
}

impl Herd {
    /// Nobody is through; `healthy` is the share of clients that must be.
    pub fn new(clients: u32, healthy: f64) -> Self {
        let clients = u64::from(clients);
        // The least number of clients that makes the share; 0.99 x 2,000 is 1,980, whatever the
        // binary fraction says.
        let mark = |share: f64| ((share * clients as f64 - 1e-6).ceil() as u64).max(1);
        let [half, most, nearly, all] = SHARES.map(mark);
        let marks = [half, most, nearly, all, mark(healthy)];
        let next = marks.into_iter().min().unwrap_or(0);
        Herd {
            clients,
            through: 0,
            lost: 0,
            times: [None; SHARES.len() + 1],
            marks,
            next,
            attempts: Vec::new(),
            tries: vec![0; clients as usize],
            waiting: 0,
            most_waiting: 0,
            longest: Span::ZERO,
        }
    }

    /// A client is through, or has given up, so long after its first send.
    pub fn settle(&mut self, now: Time, waited: Span, through: bool) {
        self.longest = self.longest.max(waited);
        if !through {
            self.lost += 1;
            return;
        }
        self.through += 1;
        if self.through < self.next {
            return;
        }
        for (time, mark) in self.times.iter_mut().zip(self.marks) {
            if time.is_none() && self.through >= mark {
                *time = Some(now);
            }
        }
        let ahead = self.marks.into_iter().filter(|&mark| mark > self.through);
        self.next = ahead.min().unwrap_or(u64::MAX);
    }

    /// A client makes an attempt.
    #[inline]
    pub fn try_again(&mut self, client: u32) {
        self.tries[client as usize] += 1;
    }

    /// A call goes into back-off.
    pub fn begin_to_wait(&mut self) {
        self.waiting += 1;
        self.most_waiting = self.most_waiting.max(self.waiting);
    }

    /// A call has left its back-off, or is given up in it.
    pub fn cease_to_wait(&mut self) {
        self.waiting -= 1;
    }

    /// Counts clients by their attempts: the run is over. Those that have not begun do not count.
    pub fn close(&mut self) {
        for made in std::mem::take(&mut self.tries).into_iter().filter(|&made| made > 0) {
            let made = made as usize;
            if self.attempts.len() <= made {
                self.attempts.resize(made + 1, 0);
            }
            self.attempts[made] += 1;
        }
    }

    /// The number of attempts that a share of the clients does not pass.
    pub fn attempts_quantile(&self, share: f64) -> Option<u64> {
        let total: u64 = self.attempts.iter().sum();
        let wanted = ((share * total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let found = self.attempts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        found.map(|made| made as u64)
    }

    /// Attempts of a client, on average.
    pub fn attempts_mean(&self) -> Option<f64> {
        let total: u64 = self.attempts.iter().sum();
        let sum: f64 =
            self.attempts.iter().zip(0u32..).map(|(n, made)| *n as f64 * f64::from(made)).sum();
        (total > 0).then(|| sum / total as f64)
    }

    /// When the healthy share was through.
    pub fn healthy_at(&self) -> Option<Time> {
        self.times[SHARES.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_through_with_the_client_that_makes_it() {
        let mut herd = Herd::new(2000, 0.9);
        for client in 1..=2000u64 {
            let now = Time::ZERO + Span::from_millis(client);
            herd.settle(now, Span::from_millis(client), client != 7);
        }
        let at = |millis| Some(Time::ZERO + Span::from_millis(millis));
        assert_eq!(herd.times, [at(1001), at(1801), at(1981), None, at(1801)]);
        assert_eq!((herd.through, herd.lost, herd.longest), (1999, 1, Span::from_secs(2)));
    }

    #[test]
    fn quantiles_of_attempts_are_whole_numbers_of_them() {
        let mut herd = Herd::new(4, 0.9);
        let tries = [0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3];
        tries.into_iter().for_each(|client| herd.try_again(client));
        herd.close();
        let quantiles = [0.5, 0.75, 0.9, 1.0].map(|share| herd.attempts_quantile(share));
        assert_eq!(quantiles, [Some(1), Some(3), Some(7), Some(7)]);
        assert_eq!(herd.attempts_mean(), Some(3.0));
    }
}
