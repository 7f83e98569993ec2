/*
 * s3/profile.c - the files ~/.aws/config and ~/.aws/credentials. A section is
 * "[profile NAME]", or "[NAME]" in credentials and for "default". A member is
 * "name = value" or "name: value", the name in any case; lines that begin with a blank
 * belong to a nested value, which no member here has. The value of credentials counts
 * more. Pure functions, except for those that read files.
 */
#include "s3/s3_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES_MOST = 1 << 20
};

zarr_status zr_s3_read_file(struct zr_str *out, const char *path, zarr_error *err)
{
    /* a pipe would block for ever */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char piece[4096];
    struct stat about;
    ssize_t n = 0;
    zarr_status st = ZARR_OK;

    if (fd < 0)
        return zr_fail_os(err,
                          errno == ENOENT || errno == ENOTDIR ? ZARR_ERR_NOT_FOUND
                          : errno == EACCES                   ? ZARR_ERR_DENIED
                                                              : ZARR_ERR_IO,
                          errno, "cannot read %.200s", path);
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        ZR_FAIL(err, ZARR_ERR_IO, "%.200s is no regular file", path);
    if (about.st_size > FILE_BYTES_MOST)
        ZR_FAIL(err, ZARR_ERR_LIMIT, "%.200s has more than 1 MiB", path);
    /* so that no copy of a secret stays behind when the text grows */
    zr_s3_text_reserve(out, (size_t)about.st_size + sizeof piece);
    while ((n = read(fd, piece, sizeof piece)) > 0) {
        zr_str_append(out, piece, (size_t)n);
        if (out->bytes > FILE_BYTES_MOST)
            ZR_FAIL(err, ZARR_ERR_LIMIT, "%.200s has more than 1 MiB", path);
    }
    if (n < 0)
        ZR_LEAVE(zr_fail_os(err, ZARR_ERR_IO, errno, "cannot read %.200s", path));
    if (out->bytes > 0 && memchr(out->ptr, '\0', out->bytes))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "%.200s is no text", path);
    st = zr_str_status(out, err);
out:
    (void)close(fd);
    zr_wipe(piece, sizeof piece);
    return st;
}

/* ---- reading ---- */

/* Reads the file that a variable names, or one in ~/.aws. One that is not there is empty,
 * and one in ~/.aws that this user may not read. */
static zarr_status read_profiles(struct zr_s3_profiles *p, struct zr_str *out,
                                 zr_s3_env *variable, const char *name, const char *usual,
                                 zarr_error *err)
{
    const char *const path = variable(name), *const home = variable("HOME");
    zarr_error said = {0};
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, out->alloc);
    if (path)
        zr_str_puts(&text, path);
    else if (home)
        zr_str_printf(&text, "%s/.aws/%s", home, usual);
    ZR_TRY(zr_str_status(&text, err));
    if (text.bytes == 0)
        goto out;
    zr_str_printf(&p->names, "%s%.200s", p->names.bytes > 0 ? " or " : "",
                  zr_str_text(&text));
    st = zr_s3_read_file(out, zr_str_text(&text), &said);
    if (st == ZARR_ERR_NOT_FOUND || (st == ZARR_ERR_DENIED && !path))
        st = ZARR_OK;
    else if (st != ZARR_OK)
        st = zr_pass(err, st, &said);
out:
    zr_str_deinit(&text);
    return st;
}

zarr_status zr_s3_profiles_read(struct zr_s3_profiles *p, const zarr_allocator *alloc,
                                zr_s3_env *variable, zarr_error *err)
{
    zr_str_init(&p->config, alloc);
    zr_str_init(&p->credentials, alloc);
    zr_str_init(&p->names, alloc);
    ZR_CHECK(read_profiles(p, &p->credentials, variable, "AWS_SHARED_CREDENTIALS_FILE",
                           "credentials", err));
    ZR_CHECK(read_profiles(p, &p->config, variable, "AWS_CONFIG_FILE", "config", err));
    return zr_str_status(&p->names, err);
}

void zr_s3_profiles_deinit(struct zr_s3_profiles *p)
{
    struct zr_str *const texts[] = {&p->config, &p->credentials, &p->names};

    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_s3_text_wipe(texts[i]);
}

/* ---- looking up ---- */

static size_t skip_blanks(const char *line, size_t at, size_t end)
{
    while (at < end && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r'))
        at++;
    return at;
}

static size_t trim_end(const char *line, size_t begin, size_t end)
{
    while (end > begin &&
           (line[end - 1] == ' ' || line[end - 1] == '\t' || line[end - 1] == '\r'))
        end--;
    return end;
}

/* Whether a line is the head of the section of a profile. */
static bool is_section(const char *line, size_t n, const char *profile, bool is_config)
{
    const char *const close = memchr(line, ']', n);
    size_t at = 1, end;

    if (!close)
        return false;
    end = (size_t)(close - line);
    at = skip_blanks(line, at, end);
    if (is_config && end - at > 8 && memcmp(line + at, "profile", 7) == 0 &&
        (line[at + 7] == ' ' || line[at + 7] == '\t'))
        at = skip_blanks(line, at + 8, end);
    else if (is_config && !zr_streq(profile, "default"))
        return false;
    end = trim_end(line, at, end);
    return end - at == strlen(profile) && memcmp(line + at, profile, end - at) == 0;
}

/* Finds a member of a profile; name NULL: only whether the profile is there. */
static bool find_profile_member(const char *text, bool is_config, const char *profile,
                                const char *name, const char **value, size_t *value_bytes)
{
    bool is_inside = false;

    if (zr_starts_with(text, "\xEF\xBB\xBF")) /* as some editors begin a file */
        text += 3;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        size_t at, end;
        size_t equals;

        n = strcspn(text, "\n");
        if (*text == '[') {
            is_inside = is_section(text, n, profile, is_config);
            if (is_inside && !name)
                return true;
        }
        if (!is_inside || !name || strchr("[#; \t\r\n", *text))
            continue;
        equals = strcspn(text, "=:\n");
        if (equals == n)
            continue;
        end = trim_end(text, 0, equals);
        if (end != strlen(name) || strncasecmp(text, name, end) != 0)
            continue;
        at = skip_blanks(text, equals + 1, n);
        *value = text + at;
        *value_bytes = trim_end(text, at, n) - at;
        return true;
    }
    return false;
}

bool zr_s3_profiles_have(const struct zr_s3_profiles *p, const char *profile)
{
    return find_profile_member(zr_str_text(&p->credentials), false, profile, NULL, NULL,
                               NULL) ||
           find_profile_member(zr_str_text(&p->config), true, profile, NULL, NULL, NULL);
}

zarr_status zr_s3_profiles_get(char **out, const struct zr_s3_profiles *p,
                               const char *profile, const char *name, zarr_error *err)
{
    const char *value = NULL;
    size_t n = 0;

    zr_free_secret(p->config.alloc, *out);
    *out = NULL;
    if ((!find_profile_member(zr_str_text(&p->credentials), false, profile, name, &value,
                              &n) &&
         !find_profile_member(zr_str_text(&p->config), true, profile, name, &value,
                              &n)) ||
        n == 0)
        return ZARR_OK;
    *out = zr_strndup(p->config.alloc, value, n);
    return *out ? ZARR_OK : zr_fail_memory(err, n + 1);
}
