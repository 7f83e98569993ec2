/*
 * store/local/mode.c - the mode and the owners of the files of the local store. A value
 * that replaces another keeps the mode of the file, and its owner and group where the
 * system permits it. A new value has the mode that the umask leaves.
 * Thread class: any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    MODE_BITS = 0777,
    MODE_OWNER = S_IRUSR | S_IWUSR
};

void zr_local_owner_read(struct zr_local_owner *o, const struct stat *st)
{
    *o = (struct zr_local_owner){
        .mode = st->st_mode & MODE_BITS, .uid = st->st_uid, .gid = st->st_gid};
}

void zr_local_owner_look(const struct zr_local_dir *dir, struct zr_local_owners *o)
{
    struct stat st;
    const bool is_there = fstatat(dir->fd, dir->name, &st, AT_SYMLINK_NOFOLLOW) == 0;

    o->is_first = !is_there && errno == ENOENT;
    o->replaces = is_there && S_ISREG(st.st_mode);
    if (o->replaces)
        zr_local_owner_read(&o->old, &st);
}

void zr_local_mode_set(struct zr_local *l, const zarr_store_op *op, int fd, mode_t mode)
{
    if (fchmod(fd, mode) != 0)
        zr_log(&l->log, ZARR_LOG_WARN, "%s: cannot keep the mode %04o: errno %d", op->key,
               (unsigned)mode, errno);
}

void zr_local_owner_set(struct zr_local *l, const zarr_store_op *op, int fd,
                        const struct zr_local_owners *o)
{
    const mode_t mode = o->old.mode | MODE_OWNER;

    if ((o->mine.uid != o->old.uid || o->mine.gid != o->old.gid) &&
        fchown(fd, o->old.uid, o->old.gid) != 0 && o->mine.gid != o->old.gid)
        (void)!fchown(fd, (uid_t)-1, o->old.gid);
    if (o->mine.mode != mode)
        zr_local_mode_set(l, op, fd, mode);
}

bool zr_local_owner_is_shut_out(const struct zr_local_owners *o)
{
    return o->replaces && (o->old.mode & MODE_OWNER) != MODE_OWNER;
}
