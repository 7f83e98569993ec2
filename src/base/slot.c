/*
 * base/slot.c - a small number for each thread that uses the library, so that caches of
 * things per thread (codec contexts, scratch) can be plain arrays without a lock. A new
 * thread gets the lowest free number. A thread that ends gives its number back, and the
 * next thread with that number gets the content of the array there. In a forked child
 * only the thread that forked keeps its number. There are ZR_THREAD_SLOTS numbers. A
 * further thread gets ZR_THREAD_NO_SLOT, and its caller works without the cache. After
 * the first call it costs one thread-local read.
 * Thread class: shared.
 */
#include "base/base.h"

enum {
    SLOT_WORD_BITS = 64,
    SLOT_WORDS = ZR_THREAD_SLOTS / SLOT_WORD_BITS
};

static struct {
    zr_mutex mutex;
    uint64_t used[SLOT_WORDS];
} slot_table = {.mutex = ZR_MUTEX_INIT};

static _Thread_local uint32_t slot_mine_plus_1; /* 0: none yet */
static pthread_key_t
    slot_key; /* only for the destructor that runs when the thread ends */
static zr_once slot_once = ZR_ONCE_INIT;
static bool slot_ready; /* set once, inside slot_once */

static void slot_mark(uint32_t slot, bool used)
{
    const uint64_t bit = UINT64_C(1) << slot % SLOT_WORD_BITS;

    if (used)
        slot_table.used[slot / SLOT_WORD_BITS] |= bit;
    else
        slot_table.used[slot / SLOT_WORD_BITS] &= ~bit;
}

static void slot_thread_ends(void *slot_plus_1)
{
    zr_mutex_lock(&slot_table.mutex);
    slot_mark((uint32_t)(uintptr_t)slot_plus_1 - 1, false);
    zr_mutex_unlock(&slot_table.mutex);
    slot_mine_plus_1 =
        0; /* a later destructor of this thread may call the library again */
}

static void slot_in_child(void *unused)
{
    ZR_UNUSED(unused);
    for (uint32_t i = 0; i < SLOT_WORDS; i++)
        slot_table.used[i] = 0;
    if (slot_mine_plus_1 && slot_mine_plus_1 != ZR_THREAD_NO_SLOT)
        slot_mark(slot_mine_plus_1 - 1, true);
}

static void slot_setup(void)
{
    static struct zr_fork_hook hook = {.mutex = &slot_table.mutex,
                                       .child = slot_in_child};

    zr_fork_hook_add(&hook);
    slot_ready = pthread_key_create(&slot_key, slot_thread_ends) == 0;
}

/* Takes the lowest free number. ZR_THREAD_NO_SLOT: all are in use. */
static uint32_t slot_take(void)
{
    uint32_t slot = ZR_THREAD_NO_SLOT;

    zr_mutex_lock(&slot_table.mutex);
    for (uint32_t i = 0; i < SLOT_WORDS && slot == ZR_THREAD_NO_SLOT; i++)
        if (~slot_table.used[i])
            slot = i * SLOT_WORD_BITS + (uint32_t)__builtin_ctzll(~slot_table.used[i]);
    if (slot != ZR_THREAD_NO_SLOT)
        slot_mark(slot, true);
    zr_mutex_unlock(&slot_table.mutex);
    return slot;
}

uint32_t zr_thread_slot(void)
{
    uint32_t slot;

    if (slot_mine_plus_1)
        return slot_mine_plus_1 == ZR_THREAD_NO_SLOT ? ZR_THREAD_NO_SLOT
                                                     : slot_mine_plus_1 - 1;
    zr_call_once(&slot_once, slot_setup);
    slot = slot_ready ? slot_take() : ZR_THREAD_NO_SLOT;
    if (slot != ZR_THREAD_NO_SLOT &&
        pthread_setspecific(slot_key, (void *)(uintptr_t)(slot + 1)) != 0) {
        slot_thread_ends((void *)(uintptr_t)(slot + 1));
        slot = ZR_THREAD_NO_SLOT;
    }
    slot_mine_plus_1 = slot == ZR_THREAD_NO_SLOT ? ZR_THREAD_NO_SLOT : slot + 1;
    return slot;
}

__attribute__((destructor)) static void slot_unload(void)
{
    if (slot_ready) /* a thread that ends must not call an unloaded library */
        pthread_key_delete(slot_key);
}
