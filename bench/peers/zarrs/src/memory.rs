//! Fresh memory, checksums, and what the process used: as in worker.c and modes.c.

const HUGE_PAGE: usize = 2 << 20;
const STEP: usize = 4099;

/// Fresh memory at a multiple of 2 MiB. It is never given back, except by `unmap`.
pub fn map(n: usize, huge: bool) -> &'static mut [u8] {
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let all = libc::mmap(std::ptr::null_mut(), n + HUGE_PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert!(all != libc::MAP_FAILED, "out of memory");
        let first = (all as usize + HUGE_PAGE - 1) & !(HUGE_PAGE - 1);
        if huge {
            libc::madvise(first as *mut _, n, libc::MADV_HUGEPAGE);
        }
        std::slice::from_raw_parts_mut(first as *mut u8, n)
    }
}

pub fn unmap(block: &mut [u8]) {
    unsafe { libc::munmap(block.as_mut_ptr().cast(), block.len()) };
}

/// Makes the host of a virtual machine give its memory before the clock runs.
pub fn touch(n: usize) {
    if n > 0 {
        let block = map(n, true);
        for i in (0..n).step_by(4096) {
            block[i] = 1;
        }
        unmap(block);
    }
}

/// CPU seconds and minor faults.
pub fn usage() -> (f64, i64) {
    let mut use_: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut use_) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + 1e-6 * t.tv_usec as f64;
    (seconds(use_.ru_utime) + seconds(use_.ru_stime), use_.ru_minflt)
}

pub fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

pub fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn words(data: &[u8]) -> impl Iterator<Item = u64> + '_ {
    data.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap()))
}

/// Of every word, and of some with their place.
pub fn full_sum(data: &[u8]) -> u64 {
    let all = words(data).fold(0u64, u64::wrapping_add);
    let placed = words(data).step_by(STEP).zip(1u64..).fold(0u64, |sum, (w, i)| sum.wrapping_add(w.wrapping_mul(i)));
    all.wrapping_add(placed)
}

pub fn sparse_sum(data: &[u8]) -> u64 {
    (0..data.len() / 8)
        .step_by(STEP)
        .map(|i| u64::from_ne_bytes(data[8 * i..8 * i + 8].try_into().unwrap()))
        .fold(0u64, u64::wrapping_add)
}

/// The same numbers in every worker.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}
