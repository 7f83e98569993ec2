//! A store whose reads take as long as requests over a network do: each thread that asks waits for the delay.
use std::time::Duration;

use zarrs::filesystem::FilesystemStore;
use zarrs::storage::byte_range::ByteRangeIterator;
use zarrs::storage::{MaybeBytes, MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey};

pub struct Slow {
    pub inner: FilesystemStore,
    pub delay: Duration,
}

impl ReadableStorageTraits for Slow {
    fn get(&self, key: &StoreKey) -> Result<MaybeBytes, StorageError> {
        std::thread::sleep(self.delay);
        self.inner.get(key)
    }

    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        std::thread::sleep(self.delay);
        self.inner.get_partial_many(key, ranges)
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        std::thread::sleep(self.delay);
        self.inner.size_key(key)
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}
