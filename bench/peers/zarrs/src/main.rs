//! The worker of the crate zarrs: see worker.h beside this folder. Built with its tools' allocator, mimalloc, and with
//! the system's. One operation a process, one line of JSON.
mod memory;
mod modes;
mod slow;

use std::time::Instant;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The command line.
pub struct Job {
    pub mode: String,
    pub place: String,
    keys: Vec<(String, String)>,
}

impl Job {
    fn parse() -> Job {
        let mut words = std::env::args().skip(1);
        let (Some(mode), Some(place)) = (words.next(), words.next()) else { panic!("usage: MODE PLACE [key=value ...]") };
        let keys = words.map(|word| word.split_once('=').map(|(k, v)| (k.into(), v.into())).expect("key=value")).collect();
        Job { mode, place, keys }
    }

    pub fn text(&self, key: &str) -> &str {
        self.keys.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v)
    }

    pub fn number(&self, key: &str, default: usize) -> usize {
        self.text(key).parse().unwrap_or(default)
    }

    pub fn numbers(&self, key: &str) -> Vec<u64> {
        self.text(key).split(',').filter_map(|v| v.parse().ok()).collect()
    }
}

fn main() -> Result<()> {
    let job = Job::parse();
    let repeats = job.number("repeats", 1);
    let mut seconds = vec![];
    let (mut sum, mut cpu, mut faults) = (0, 0.0, 0);
    let mut modes = modes::Modes::begin(&job)?;
    // The first of several is not counted: it warms what the process keeps.
    for i in 0..repeats + usize::from(repeats > 1) {
        modes.before()?;
        memory::touch(job.number("touch", 0));
        memory::reset_peak();
        let before = memory::usage();
        let start = Instant::now();
        let took = modes.run()?.unwrap_or_else(|| start.elapsed());
        let after = memory::usage();
        if i > 0 || repeats == 1 {
            seconds.push(took.as_secs_f64());
        }
        (cpu, faults) = (after.0 - before.0, after.1 - before.1);
        sum = modes.after();
    }
    println!(
        "{{\"seconds\": {seconds:?}, \"sum\": {sum}, \"cpu\": {cpu:.4}, \"faults\": {faults}, \"peak_kb\": {}}}",
        memory::peak_kb()
    );
    Ok(())
}
