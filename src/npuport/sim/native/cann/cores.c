/* How many cores a device, a stream or a thread may use: kept and given back. It changes no result here, and times are not simulated. */
#include "stand_in.h"

#include <pthread.h>

enum { KINDS = 2, STREAMS = 256 }; /* kinds of cores: 0 cube, 1 vector */

typedef struct { bool set[KINDS]; uint32_t cores[KINDS]; } Limits;
typedef struct { const void* stream; Limits limits; } StreamLimits;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Limits of_devices[MAX_DEVICES];
static StreamLimits of_streams[STREAMS];
static _Thread_local const void* used; /* the stream whose limits count in this thread */
static _Thread_local bool uses;

static aclError check_kind(int kind) {
    return kind >= 0 && kind < KINDS ? ACL_SUCCESS : npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "unknown kind of cores %d", kind);
}

static aclError check(int device, int kind) {
    if (device < 0 || device >= npuport_device_count()) return npuport_fail(ACL_ERROR_RT_INVALID_DEVICEID, "invalid device %d", device);
    return check_kind(kind);
}

/* A free entry if the stream has none; NULL when all are taken. The lock is held. */
static StreamLimits* entry_of(const void* stream) {
    StreamLimits* free_entry = NULL;
    for (StreamLimits* entry = of_streams; entry < of_streams + STREAMS; entry++) {
        bool taken = entry->limits.set[0] || entry->limits.set[1];
        if (taken && entry->stream == stream) return entry;
        if (!taken && !free_entry) free_entry = entry;
    }
    return free_entry;
}

static uint32_t of_chip(int kind) {
    const char* text = getenv(kind ? "NPUPORT_SIM_VECTOR_CORES" : "NPUPORT_SIM_CUBE_CORES");
    return text ? (uint32_t)atoi(text) : 0; /* 0: not known */
}

static void get(const Limits* limits, const Limits* otherwise, int kind, uint32_t* cores) {
    *cores = limits->set[kind] ? limits->cores[kind] : otherwise && otherwise->set[kind] ? otherwise->cores[kind] : of_chip(kind);
}

aclError aclrtGetDeviceResLimit(int32_t device, int kind, uint32_t* cores) {
    aclError error = check(device, kind);
    if (error) return error;
    pthread_mutex_lock(&lock);
    get(&of_devices[device], NULL, kind, cores);
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

aclError aclrtSetDeviceResLimit(int32_t device, int kind, uint32_t cores) {
    aclError error = check(device, kind);
    if (error) return error;
    pthread_mutex_lock(&lock);
    of_devices[device].set[kind] = true;
    of_devices[device].cores[kind] = cores;
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t device) {
    aclError error = check(device, 0);
    if (error) return error;
    pthread_mutex_lock(&lock);
    of_devices[device] = (Limits){0};
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(const void* stream, int kind, uint32_t* cores) {
    static const Limits none;
    aclError error = check_kind(kind);
    if (error) return error;
    int device = npuport_current_device();
    pthread_mutex_lock(&lock);
    const StreamLimits* entry = entry_of(stream);
    get(entry && entry->stream == stream ? &entry->limits : &none, device >= 0 ? &of_devices[device] : NULL, kind, cores);
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(const void* stream, int kind, uint32_t cores) {
    aclError error = check_kind(kind);
    if (error) return error;
    pthread_mutex_lock(&lock);
    StreamLimits* entry = entry_of(stream);
    if (entry) {
        entry->stream = stream;
        entry->limits.set[kind] = true;
        entry->limits.cores[kind] = cores;
    }
    pthread_mutex_unlock(&lock);
    return entry ? ACL_SUCCESS : npuport_fail(ACL_ERROR_RT_PARAM_INVALID, "at most %d streams have limits of their own", STREAMS);
}

aclError aclrtResetStreamResLimit(const void* stream) {
    pthread_mutex_lock(&lock);
    StreamLimits* entry = entry_of(stream);
    if (entry) *entry = (StreamLimits){0};
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(const void* stream) {
    used = stream;
    uses = true;
    return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(const void* stream) {
    (void)stream;
    uses = false;
    return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(int kind, uint32_t* cores) {
    if (uses) return aclrtGetStreamResLimit(used, kind, cores);
    int device = npuport_current_device();
    return aclrtGetDeviceResLimit(device < 0 ? 0 : device, kind, cores);
}
