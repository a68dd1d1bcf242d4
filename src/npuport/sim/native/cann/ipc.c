/* Device memory that another process maps too. A key names the process that holds the memory, and the file behind it there. */
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_BYTES = 63 };
typedef struct Shared {
    struct Shared* next;
    char key[KEY_BYTES + 1];
    void* start;
    int file;   /* of memory that is exported */
    size_t size; /* of memory that is imported; 0: exported */
} Shared;

static Shared* all;
aclError aclrtIpcMemClose(const char* key);

static Shared** place_of(const char* key, bool imported) {
    Shared** at = &all;
    while (*at && (strcmp((*at)->key, key) || ((*at)->size != 0) != imported)) at = &(*at)->next;
    return at;
}

static const Shared* export_of(const void* start) {
    const Shared* shared = all;
    while (shared && (shared->size || shared->start != start)) shared = shared->next;
    return shared;
}

static void keep(const char* key, void* start, int file, size_t size) {
    Shared* shared = calloc(1, sizeof *shared);
    *shared = (Shared){.next = all, .start = start, .file = file, .size = size};
    snprintf(shared->key, sizeof shared->key, "%s", key);
    all = shared;
}

aclError aclrtIpcMemGetExportKey(void* start, size_t size, char* key, size_t room, uint64_t flags) {
    (void)size, (void)flags;
    if (room <= KEY_BYTES) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtIpcMemGetExportKey: %zu bytes are too few for a key", room);
    memset(key, 0, room);
    npuport_lock();
    const Shared* before = export_of(start);
    if (before) strcpy(key, before->key);
    npuport_unlock();
    if (before) return ACL_SUCCESS;
    int file;
    aclError error = npuport_share_memory(start, &file);
    if (error) return error;
    snprintf(key, room, "npuport-%d-%d", (int)getpid(), file);
    npuport_lock();
    keep(key, start, file, 0);
    npuport_unlock();
    return ACL_SUCCESS;
}

/* The memory is freed; those who have mapped it keep it. */
void npuport_end_export(void* start) {
    npuport_lock();
    const Shared* export = export_of(start);
    char key[KEY_BYTES + 1] = "";
    if (export) strcpy(key, export->key);
    npuport_unlock();
    if (*key) aclrtIpcMemClose(key);
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* processes, size_t count) {
    (void)key, (void)processes, (void)count; /* every process of the same user may */
    return ACL_SUCCESS;
}

static int open_of(int process, int file, size_t* size) {
    char path[64];
    struct stat facts;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened >= 0 && !fstat(opened, &facts)) *size = (size_t)facts.st_size;
    return opened;
}

aclError aclrtIpcMemImportByKey(void** start, const char* key, uint64_t flags) {
    (void)flags;
    int process, number;
    size_t size = 0;
    if (sscanf(key, "npuport-%d-%d", &process, &number) != 2) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtIpcMemImportByKey: not a key: %.64s", key);
    int file = open_of(process, number, &size);
    if (file < 0) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtIpcMemImportByKey: process %d has the memory no more: %s", process, strerror(errno));
    void* mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot map %zu bytes of process %d: %s", size, process, strerror(errno));
    npuport_know_memory(mapped, size);
    npuport_lock();
    keep(key, mapped, -1, size);
    npuport_unlock();
    *start = mapped;
    return ACL_SUCCESS;
}

/* By the process that imported, or the one that exported: its own memory stays. */
aclError aclrtIpcMemClose(const char* key) {
    npuport_lock();
    Shared** at = place_of(key, true);
    if (!*at) at = place_of(key, false);
    Shared* shared = *at;
    if (shared) *at = shared->next;
    npuport_unlock();
    if (!shared) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtIpcMemClose: unknown key %.64s", key);
    if (shared->size) {
        npuport_unknow_memory(shared->start);
        munmap(shared->start, shared->size);
    } else {
        close(shared->file);
    }
    free(shared);
    return ACL_SUCCESS;
}

/* The same for memory without an address of its own (expandable segments): process and file in one number. */
aclError aclrtMemExportToShareableHandle(void* handle, int kind, uint64_t flags, uint64_t* shareable) {
    (void)kind, (void)flags;
    *shareable = (uint64_t)getpid() << 32 | (uint32_t)npuport_physical_file(handle);
    return ACL_SUCCESS;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareable, int32_t* processes, size_t count) {
    (void)shareable, (void)processes, (void)count;
    return ACL_SUCCESS;
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareable, int32_t device, void** handle) {
    size_t size = 0;
    int process = (int)(shareable >> 32), file = open_of(process, (int)(uint32_t)shareable, &size);
    if (file < 0) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "process %d has the memory no more: %s", process, strerror(errno));
    *handle = npuport_imported_physical(file, size, device);
    return ACL_SUCCESS;
}
