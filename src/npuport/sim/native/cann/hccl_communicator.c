/* Communicators: how they come to be, what may be asked of them, how they end. */
#include "hccl.h"

#include <unistd.h>

enum { CONFIG_NAME = 32, CONFIG_TIMEOUT = 316, CONFIG_ALGORITHM = 320, ALGORITHM_BYTES = 1600, NOT_SET = -1, GRACE_MS = 5000, SETTINGS = 2 };

static Comm* live;
HcclResult HcclCommDestroy(void* handle);

static bool take_out(const Comm* comm) {
    for (Comm** at = &live; *at; at = &(*at)->next)
        if (*at == comm) return *at = comm->next, true;
    return false;
}

/* Programs end without destroying their communicators. The memory needs no care, but those who wait are told at once. */
static __attribute__((destructor)) void leave_all(void) {
    for (Comm* comm = live; comm; comm = comm->next)
        if (comm->owner == getpid()) npuport_leave(comm);
}

/* HcclCommConfig by its offsets, which later versions only extend. */
static HcclResult configure(Comm* comm, const char* configuration) {
    comm->limit_ms = npuport_limit_ms("HCCL_EXEC_TIMEOUT", 1836);
    if (!configuration) return HCCL_SUCCESS;
    if (configuration[CONFIG_NAME]) snprintf(comm->name, sizeof comm->name, "%s", configuration + CONFIG_NAME);
    size_t size; /* the first field of it */
    int32_t seconds = NOT_SET;
    memcpy(&size, configuration, sizeof size);
    if (size >= CONFIG_TIMEOUT + sizeof seconds) memcpy(&seconds, configuration + CONFIG_TIMEOUT, sizeof seconds);
    if (seconds > 0) comm->limit_ms = seconds * 1e3;
    const char* algorithm = size >= CONFIG_ALGORITHM + ALGORITHM_BYTES ? configuration + CONFIG_ALGORITHM : "";
    if (!*algorithm || strstr(algorithm, "level")) return HCCL_SUCCESS; /* level0:NA;level1:ring, for one */
    return npuport_fail(HCCL_E_PARA, "EI0003: hccl_algo %.40s does not name the algorithms of levels, as in level0:NA;level1:ring", algorithm);
}

static HcclResult enter(const Place* place, uint32_t ranks, uint32_t rank, const char* configuration, Comm** out) {
    Comm* comm = calloc(1, sizeof *comm);
    snprintf(comm->name, sizeof comm->name, "npuport_%d_%d", place->holder.process, place->file);
    HcclResult error = configure(comm, configuration);
    if (!error) error = npuport_attach(comm, place, ranks, rank);
    if (error) {
        free(comm);
        return error;
    }
    comm->owner = (int32_t)getpid();
    comm->references = 1;
    npuport_lock();
    comm->next = live;
    live = comm;
    npuport_unlock();
    *out = comm;
    return HCCL_SUCCESS;
}

static HcclResult join(const Place* place, uint32_t ranks, uint32_t rank, const char* configuration, void** out) {
    Comm* comm;
    HcclResult error = enter(place, ranks, rank, configuration, &comm);
    if (error) return error;
    error = npuport_await_others(comm);
    if (error) {
        HcclCommDestroy(comm);
        return error;
    }
    npuport_forget_failures(); /* those of communicators that this one replaces */
    *out = comm;
    return HCCL_SUCCESS;
}

static void close_own(const Place* place) {
    if (place->holder.process == (int32_t)getpid()) close(place->file); /* all have opened it, or will not any more */
}

HcclResult HcclGetRootInfo(char* info) {
    Place place;
    memset(info, 0, ROOT_INFO_BYTES);
    HcclResult error = npuport_new_place(&place);
    if (!error) memcpy(info, &place, sizeof place);
    return error;
}

HcclResult HcclGetRootInfoScalable(char* info) { return HcclGetRootInfo(info); }

HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const char* info, uint32_t rank, const char* configuration, void** out) {
    Place place;
    memcpy(&place, info, sizeof place);
    HcclResult error = join(&place, ranks, rank, configuration, out);
    close_own(&place);
    return error;
}

HcclResult HcclCommInitRootInfo(uint32_t ranks, const char* info, uint32_t rank, void** out) { return HcclCommInitRootInfoConfig(ranks, info, rank, NULL, out); }

/* Several roots share the work of joining on large machines; here one is enough. */
HcclResult HcclCommInitRootInfoScalable(uint32_t ranks, uint32_t roots, const char* infos, uint32_t rank, uint32_t reserved, const char* configuration, void** out) {
    (void)reserved;
    if (roots == 0) return npuport_fail(HCCL_E_PARA, "HcclCommInitRootInfoScalable: no root");
    return HcclCommInitRootInfoConfig(ranks, infos, rank, configuration, out);
}

/* All ranks are in this process, one to a device, so nobody needs to be waited for. */
HcclResult HcclCommInitAll(uint32_t ranks, const int32_t* devices, void** out) {
    Place place;
    HcclResult error = npuport_new_place(&place);
    if (error) return error;
    for (uint32_t rank = 0; rank < ranks && !error; rank++) {
        if (devices[rank] < 0 || devices[rank] >= npuport_device_count()) error = npuport_fail(HCCL_E_PARA, "HcclCommInitAll: there is no device %d", devices[rank]);
        if (!error) error = enter(&place, ranks, rank, NULL, (Comm**)&out[rank]);
    }
    close_own(&place);
    return error;
}

HcclResult HcclCreateSubCommConfig(void** parent, uint32_t ranks, const uint32_t* members, uint64_t id, uint32_t rank, const char* configuration, void** out) {
    if (!members) { /* a rank outside the group only agrees that it exists */
        *out = NULL;
        return HCCL_SUCCESS;
    }
    Place place;
    HcclResult error = npuport_child_place(*parent, id, members, ranks, rank, &place);
    if (error) return error;
    error = join(&place, ranks, rank, configuration, out);
    close_own(&place);
    return error;
}

HcclResult HcclCommInitClusterInfoConfig(const char* table, uint32_t rank, const char* configuration, void** out) {
    Place place;
    uint32_t ranks;
    HcclResult error = npuport_table_place(table, &ranks, &place);
    if (error) return error;
    error = join(&place, ranks, rank, configuration, out);
    close_own(&place);
    return error;
}

HcclResult HcclCommInitClusterInfo(const char* table, uint32_t rank, void** out) { return HcclCommInitClusterInfoConfig(table, rank, NULL, out); }

void npuport_release_comm(Comm* comm) {
    if (--comm->references) return;
    npuport_detach(comm);
    free(comm);
}

/* What is under way may end by itself, but not for ever: the other ranks may be gone. */
HcclResult HcclCommDestroy(void* handle) {
    Comm* comm = handle;
    npuport_lock();
    if (!take_out(comm)) {
        npuport_unlock();
        return npuport_fail(HCCL_E_PARA, "the communicator is not known");
    }
    double until = npuport_now_ms() + GRACE_MS;
    while (comm->done < comm->issued && npuport_wait_changed(until));
    comm->closing = true;
    npuport_leave(comm);
    npuport_release_comm(comm);
    npuport_unlock();
    return HCCL_SUCCESS;
}

HcclResult HcclGetCommName(void* comm, char* name) {
    snprintf(name, NAME_BYTES, "%s", ((Comm*)comm)->name);
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(void* comm, uint32_t* ranks) {
    *ranks = ((Comm*)comm)->ranks;
    return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(void* comm, uint32_t* rank) {
    *rank = ((Comm*)comm)->rank;
    return HCCL_SUCCESS;
}

HcclResult HcclGetCommAsyncError(void* comm, HcclResult* error) {
    *error = ((Comm*)comm)->error;
    return HCCL_SUCCESS;
}

/* The number of options of HcclCommConfig. Only the name and the time limit change anything here. */
uint32_t HcclGetCommConfigCapability(void) { return 12; }

static int settings[SETTINGS];
HcclResult HcclSetConfig(int name, int value) {
    if (name < 0 || name >= SETTINGS) return npuport_fail(HCCL_E_PARA, "unknown HCCL setting %d", name);
    settings[name] = value;
    return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(int name, int* value) {
    if (name < 0 || name >= SETTINGS) return npuport_fail(HCCL_E_PARA, "unknown HCCL setting %d", name);
    *value = settings[name];
    return HCCL_SUCCESS;
}

HcclResult HcclCommSuspend(void* comm) {
    ((Comm*)comm)->suspended = true;
    return HCCL_SUCCESS;
}

HcclResult HcclCommResume(void* comm) {
    ((Comm*)comm)->suspended = false;
    return HCCL_SUCCESS;
}

/* Memory that communication may use in place. All device memory here is memory that every call can use, so there is nothing to do. */
HcclResult HcclCommRegister(void* comm, void* address, uint64_t bytes, void** handle, uint32_t flag) {
    (void)comm, (void)bytes, (void)flag;
    *handle = address;
    return HCCL_SUCCESS;
}

HcclResult HcclCommDeregister(void* comm, void* handle) { return (void)comm, (void)handle, HCCL_SUCCESS; }
HcclResult HcclCommSetMemoryRange(void* comm, void* base, size_t bytes, size_t alignment, uint64_t flags) { return (void)comm, (void)base, (void)bytes, (void)alignment, (void)flags, HCCL_SUCCESS; }
HcclResult HcclCommUnsetMemoryRange(void* comm, void* base) { return (void)comm, (void)base, HCCL_SUCCESS; }
HcclResult HcclCommActivateCommMemory(void* comm, void* address, size_t bytes, size_t offset, void* handle, uint64_t flags) { return (void)comm, (void)address, (void)bytes, (void)offset, (void)handle, (void)flags, HCCL_SUCCESS; }
HcclResult HcclCommDeactivateCommMemory(void* comm, void* address) { return (void)comm, (void)address, HCCL_SUCCESS; }
HcclResult HcclCommWorkingDevNicSet(void* comm, uint32_t* ranks, bool* backup, uint32_t count) { return (void)comm, (void)ranks, (void)backup, (void)count, HCCL_SUCCESS; }

const char* HcclGetErrorString(HcclResult code) {
    switch (code) {
        case HCCL_SUCCESS: return "no error";
        case HCCL_E_PARA: return "parameter error";
        case HCCL_E_PTR: return "null pointer";
        case HCCL_E_MEMORY: return "memory error";
        case HCCL_E_NOT_SUPPORT: return "not supported";
        case HCCL_E_SYSCALL: return "system call failed";
        case HCCL_E_TIMEOUT: return "timeout";
        case HCCL_E_REMOTE: return "a remote rank has failed";
        case HCCL_E_SUSPENDING: return "the communicator is suspended";
        default: return "internal error";
    }
}
