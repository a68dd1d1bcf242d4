/* Device memory is host memory, counted per device (ledger.c) against the memory of the chip. */
#include "queue.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 512, PAGE = 4096, HOST = -1 };
typedef struct Block { char* start; size_t size; int device; struct Block* next; } Block;
typedef struct { int file; size_t size; int device; bool imported; } Physical;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block* blocks; /* torch_npu's allocator takes segments of megabytes, so the list is short */

static void remember(char* start, size_t size, int device) {
    Block* block = malloc(sizeof *block);
    *block = (Block){start, size, device, NULL};
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
}

static bool forget(const void* start, Block* found) {
    bool known = false;
    pthread_mutex_lock(&lock);
    for (Block** at = &blocks; *at && !known; ) {
        Block* block = *at;
        if (block->start == start) {
            *at = block->next;
            *found = *block;
            free(block);
            known = true;
        } else {
            at = &block->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return known;
}

static bool find(const void* pointer, Block* found) {
    bool known = false;
    pthread_mutex_lock(&lock);
    for (Block* block = blocks; block && !known; block = block->next)
        if ((char*)pointer >= block->start && (char*)pointer < block->start + block->size) *found = *block, known = true;
    pthread_mutex_unlock(&lock);
    return known;
}

static aclError out_of_memory(int device, size_t size) {
    return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "simulated device %d has %zu bytes, %zu in use, %zu more were asked for", device,
                        npuport_memory_total(), npuport_memory_used(device), size);
}

aclError aclrtMalloc(void** pointer, size_t size, int policy) {
    (void)policy;
    int device = npuport_current_device();
    if (device < 0) return npuport_fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtMalloc: this thread has no device");
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size == 0 || rounded < size) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMalloc: size %zu", size);
    if (!npuport_take_memory(device, rounded)) return out_of_memory(device, rounded);
    /* Only what is written takes memory of the host; without MAP_NORESERVE a large reservation would make fork() fail. */
    void* start = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        npuport_give_memory_back(device, rounded);
        return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes left for the simulated device %d", rounded, device);
    }
    remember(start, rounded, device);
    *pointer = start;
    return ACL_SUCCESS;
}

/* A block is private until it is exported; then a file with the same bytes takes its place at the same address. */
aclError npuport_share_memory(void* start, int* file) {
    Block block;
    if (!find(start, &block) || block.start != (char*)start || block.device == HOST)
        return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not the start of device memory", start);
    npuport_drain_device(block.device, -1); /* nothing may write to it meanwhile */
    *file = memfd_create("npuport-shared", MFD_CLOEXEC);
    void* copy = *file < 0 || ftruncate(*file, (off_t)block.size) ? MAP_FAILED : mmap(NULL, block.size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (copy == MAP_FAILED) return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot share %zu bytes", block.size);
    memcpy(copy, start, block.size);
    mremap(copy, block.size, block.size, MREMAP_MAYMOVE | MREMAP_FIXED, start);
    return ACL_SUCCESS;
}

void npuport_know_memory(void* start, size_t size) { remember(start, size, npuport_current_device()); }

void npuport_unknow_memory(void* start) {
    Block block;
    forget(start, &block);
}

aclError aclrtMallocAlign32(void** pointer, size_t size, int policy) { return aclrtMalloc(pointer, size, policy); }

aclError aclrtFree(void* pointer) {
    Block block;
    if (!forget(pointer, &block)) return npuport_fail(ACL_ERROR_RT_MEMORY_FREE, "aclrtFree: %p is not device memory", pointer);
    npuport_end_export(pointer);
    munmap(pointer, block.size);
    npuport_give_memory_back(block.device, block.size);
    return ACL_SUCCESS;
}

/* In whole pages, as torch_npu's swapped memory takes for granted. */
aclError aclrtMallocHost(void** pointer, size_t size) {
    size_t rounded = size ? (size + PAGE - 1) / PAGE * PAGE : PAGE;
    *pointer = aligned_alloc(PAGE, rounded);
    if (!*pointer) return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes left", size);
    remember(*pointer, rounded, HOST);
    return ACL_SUCCESS;
}

aclError aclrtMallocHostWithCfg(void** pointer, uint64_t size, void* configuration) {
    (void)configuration;
    return aclrtMallocHost(pointer, size);
}

aclError aclrtFreeHost(void* pointer) {
    Block block;
    if (!forget(pointer, &block)) return npuport_fail(ACL_ERROR_RT_MEMORY_FREE, "aclrtFreeHost: %p was not given out", pointer);
    free(pointer);
    return ACL_SUCCESS;
}

/* Registered host memory stays where it is: the device sees the same address. */
static aclError check_host(const void* pointer, uint64_t size) {
    return pointer && size ? ACL_SUCCESS : npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "%p with %llu bytes is no memory to register", pointer, (unsigned long long)size);
}

aclError aclrtHostRegister(void* pointer, uint64_t size, int kind, void** device_pointer) {
    (void)kind;
    if (check_host(pointer, size)) return ACL_ERROR_RT_PARAM_INVALID;
    remember(pointer, size, HOST);
    *device_pointer = pointer;
    return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* pointer, uint64_t size, uint32_t flags) {
    (void)flags;
    if (check_host(pointer, size)) return ACL_ERROR_RT_PARAM_INVALID;
    remember(pointer, size, HOST);
    return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* pointer) {
    Block block;
    return forget(pointer, &block) ? ACL_SUCCESS : npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "%p was not registered", pointer);
}

typedef struct { uint32_t id; int type; uint32_t page_size; uint32_t reserved[4]; } PointerAttributes; /* type: 0 host, 1 device, 2 unknown */

aclError aclrtPointerGetAttributes(const void* pointer, PointerAttributes* attributes) {
    Block block;
    memset(attributes, 0, sizeof *attributes);
    if (!find(pointer, &block)) {
        attributes->type = 2;
    } else if (block.device != HOST) {
        attributes->type = 1;
        attributes->id = (uint32_t)block.device;
    }
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t count, int kind) {
    (void)kind;
    if (count > room) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpy: %zu bytes into room for %zu", count, room);
    if (count) memmove(to, from, count);
    return ACL_SUCCESS;
}

/* "Asynchronous" where it must be: behind a communication of the same stream. */
typedef struct { void* to; const void* from; int32_t value; size_t count; } Write;

static aclError run_write(void* argument) {
    Write write = *(Write*)argument;
    free(argument);
    if (write.from) memmove(write.to, write.from, write.count);
    else memset(write.to, write.value, write.count);
    return ACL_SUCCESS;
}

static aclError write_later(Write write, void* stream) {
    if (!write.count) return ACL_SUCCESS;
    Write* kept = malloc(sizeof *kept);
    *kept = write;
    return npuport_follow(npuport_stream(stream), run_write, kept);
}

aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count, int kind, void* stream) {
    (void)kind;
    if (count > room) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpyAsync: %zu bytes into room for %zu", count, room);
    return write_later((Write){to, from, 0, count}, stream);
}

aclError aclrtMemcpyAsyncWithCondition(void* to, size_t room, const void* from, size_t count, int kind, void* stream) {
    return aclrtMemcpyAsync(to, room, from, count, kind, stream);
}

aclError aclrtMemset(void* to, size_t room, int32_t value, size_t count) {
    if (count > room) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemset: %zu bytes into room for %zu", count, room);
    if (count) memset(to, value, count);
    return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t count, void* stream) {
    if (count > room) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMemsetAsync: %zu bytes into room for %zu", count, room);
    return write_later((Write){to, NULL, value, count}, stream);
}

/* Virtual memory, which torch_npu uses for expandable segments: addresses are reserved first, and physical memory is mapped into them. */
aclError aclrtReserveMemAddress(void** address, size_t size, size_t alignment, void* expected, uint64_t flags) {
    (void)alignment, (void)expected, (void)flags;
    void* start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot reserve %zu bytes of addresses", size);
    remember(start, size, npuport_current_device());
    *address = start;
    return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void* address) {
    Block block;
    if (!forget(address, &block)) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "%p was not reserved", address);
    munmap(address, block.size);
    return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(void** handle, size_t size, const void* properties, uint64_t flags) {
    (void)properties, (void)flags;
    int device = npuport_current_device();
    if (device < 0) return npuport_fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtMallocPhysical: this thread has no device");
    if (!npuport_take_memory(device, size)) return out_of_memory(device, size);
    int file = memfd_create("npuport", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size)) {
        if (file >= 0) close(file);
        npuport_give_memory_back(device, size);
        return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host has no %zu bytes left for the simulated device %d", size, device);
    }
    Physical* physical = malloc(sizeof *physical);
    *physical = (Physical){file, size, device, false};
    *handle = physical;
    return ACL_SUCCESS;
}

aclError aclrtFreePhysical(void* handle) {
    Physical* physical = handle;
    close(physical->file);
    if (!physical->imported) npuport_give_memory_back(physical->device, physical->size);
    free(physical);
    return ACL_SUCCESS;
}

int npuport_physical_file(const void* handle) { return ((const Physical*)handle)->file; }

void* npuport_imported_physical(int file, size_t size, int device) {
    Physical* physical = malloc(sizeof *physical);
    *physical = (Physical){file, size, device, true};
    return physical;
}

aclError aclrtMapMem(void* address, size_t size, size_t offset, void* handle, uint64_t flags) {
    (void)flags;
    Physical* physical = handle;
    void* mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, (off_t)offset);
    if (mapped == MAP_FAILED) return npuport_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot map %zu bytes at %p", size, address);
    remember(address, size, physical->device);
    return ACL_SUCCESS;
}

aclError aclrtUnmapMem(void* address) {
    Block block;
    if (!forget(address, &block)) return npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped at %p", address);
    mmap(address, block.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return ACL_SUCCESS;
}
