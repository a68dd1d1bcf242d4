/* Devices, contexts and what a program may ask about the chip. The launcher hands the chip over in environment variables. */
#include "stand_in.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

typedef struct { int device; } Context;

static Context contexts[MAX_DEVICES];
static _Atomic bool active[MAX_DEVICES];
static _Thread_local int chosen = -1;
static _Atomic int default_device = -1; /* what a thread has that chose none; -1 unless the configuration of aclInit names one */
static _Atomic bool initialised;

static long long setting(const char* name, long long otherwise) {
    const char* text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

/* ASCEND_RT_VISIBLE_DEVICES counts as torch_npu says of a real machine (_parse_visible_devices): reading ends at whatever is neither digit nor
 * comma, at a missing number and at a device that does not exist; numbers that do not ascend leave no device. `numbers` gets what the visible
 * devices are called on the machine. */
static int visible_devices(int available, int numbers[MAX_DEVICES]) {
    const char* text = getenv("ASCEND_RT_VISIBLE_DEVICES");
    int count = 0;
    if (!text) {
        for (; count < available; count++) numbers[count] = count;
        return count;
    }
    for (long previous = -1; isdigit((unsigned char)*text); count++) {
        char* end;
        long device = strtol(text, &end, 10);
        if (device <= previous) return 0;
        if (device >= available) return count;
        numbers[count] = (int)device;
        previous = device;
        text = *end == ',' ? end + 1 : "";
    }
    return count;
}

static int devices_of_machine(void) {
    long long devices = setting("NPUPORT_SIM_DEVICES", 1);
    return devices < 0 ? 0 : devices > MAX_DEVICES ? MAX_DEVICES : (int)devices;
}

int npuport_device_count(void) {
    int numbers[MAX_DEVICES];
    return visible_devices(devices_of_machine(), numbers);
}

/* The driver's number of devices (libascend_hal), whatever is visible. */
int drvGetDevNum(int* count) {
    *count = devices_of_machine();
    return 0;
}

int npuport_physical_device(int device) {
    int numbers[MAX_DEVICES];
    return device < visible_devices(devices_of_machine(), numbers) ? numbers[device] : device;
}

int npuport_current_device(void) { return chosen >= 0 ? chosen : default_device; }

size_t npuport_memory_total(void) { return (size_t)setting("NPUPORT_SIM_MEMORY_BYTES", 64LL << 30); }

double npuport_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

static aclError check_device(int device) {
    if (device >= 0 && device < npuport_device_count()) return ACL_SUCCESS;
    return npuport_fail(ACL_ERROR_RT_INVALID_DEVICEID, "invalid device %d: the simulated machine has %d (option: devices)", device,
                        npuport_device_count());
}

/* {"defaultDevice": {"default_device": "0"}} */
static int device_in(const char* path) {
    char text[4096] = "";
    FILE* file = path ? fopen(path, "r") : NULL;
    if (!file) return -1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    const char* key = strstr(text, "\"default_device\"");
    int device = -1;
    return key && sscanf(key, "\"default_device\" : \"%d\"", &device) == 1 && device < npuport_device_count() ? device : -1;
}

/* Libraries that put themselves in front of CANN's functions (LD_PRELOAD) look for ours among the global names. */
__attribute__((constructor)) static void be_found(void) {
    Dl_info own;
    if (dladdr((void*)be_found, &own)) dlopen(own.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
}

aclError aclInit(const char* configuration) {
    default_device = device_in(configuration);
    return atomic_exchange(&initialised, true) ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS;
}

aclError aclFinalize(void) {
    initialised = false;
    return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
    *count = (uint32_t)npuport_device_count();
    return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
    aclError error = check_device(device);
    if (error) return error;
    contexts[device].device = device;
    active[device] = true;
    chosen = device;
    return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
    if (npuport_current_device() < 0) return ACL_ERROR_RT_CONTEXT_NULL; /* no text: torch_npu asks this on purpose before it sets a device */
    *device = npuport_current_device();
    return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t device) {
    aclError error = check_device(device);
    if (error) return error;
    active[device] = false;
    if (chosen == device) chosen = -1;
    return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(void** context) {
    int device = npuport_current_device();
    if (device < 0) return npuport_fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no device context");
    contexts[device].device = device;
    *context = &contexts[device];
    return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(void* context) {
    if (!context) return npuport_fail(ACL_ERROR_RT_CONTEXT_NULL, "the context is null");
    return aclrtSetDevice(((Context*)context)->device);
}

aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t* flags, int32_t* is_active) {
    aclError error = check_device(device);
    if (error) return error;
    if (flags) *flags = 0;
    *is_active = active[device];
    return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t* logical) {
    *logical = user;
    return check_device(user);
}

aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
    aclError error = check_device(device);
    if (!error) error = check_device(peer);
    *can = !error && device != peer;
    return error;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
    (void)flags;
    return check_device(peer);
}

aclError aclrtDeviceGetBareTgid(int32_t* process) {
    *process = (int32_t)getpid();
    return ACL_SUCCESS;
}

const char* aclrtGetSocName(void) {
    const char* name = getenv("NPUPORT_SIM_CHIP");
    return name && *name ? name : "Ascend910B3";
}

/* Real numbers only where the launcher knows them (0 means unknown). Device info: 0 AI cores, 1 vector cores, 2 L2 cache in bytes. */
aclError aclGetDeviceCapability(uint32_t device, int info, int64_t* value) {
    aclError error = check_device((int)device);
    if (error) return error;
    *value = info == 0 ? setting("NPUPORT_SIM_CUBE_CORES", 0) : info == 1 ? setting("NPUPORT_SIM_VECTOR_CORES", 0) : 0;
    return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(int attribute, size_t* free_bytes, size_t* total_bytes) {
    (void)attribute;
    int device = npuport_current_device();
    if (device < 0) return npuport_fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetMemInfo: this thread has no device");
    size_t used = npuport_memory_used(device), total = npuport_memory_total();
    *total_bytes = total;
    *free_bytes = used < total ? total - used : 0;
    return ACL_SUCCESS;
}

/* Memory by component (the runtime, HCCL and others), which have none of the simulated device's: an empty list. */
aclError aclrtGetMemUsageInfo(int32_t device, void* usage, size_t room, size_t* count) {
    (void)usage, (void)room;
    *count = 0;
    return check_device(device);
}

/* Ends what a device is doing: computing is done when it is asked, and communication goes on. */
aclError aclrtDeviceTaskAbort(int32_t device, uint32_t timeout) {
    (void)timeout;
    return check_device(device);
}

/* What this CANN can do: 0 keeps Inf and NaN, 1 bfloat16, 2 compiles operators at run time. */
aclError aclGetCannAttribute(int attribute, int32_t* value) {
    if (attribute < 0 || attribute > 2) return npuport_fail(ACL_ERROR_INVALID_PARAM, "unknown CANN attribute %d", attribute);
    *value = attribute != 0 || setting("NPUPORT_SIM_INF_NAN", 1);
    return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const int** attributes, size_t* count) {
    static const int known[] = {0, 1, 2};
    *attributes = known;
    *count = 3;
    return ACL_SUCCESS;
}

#define CANN_VERSION "9.1.0" /* the newest CANN release in torch_npu's compatibility table */

aclError aclsysGetCANNVersion(int package, char* version) {
    (void)package;
    strcpy(version, CANN_VERSION); /* the first field of the structure: char version[128] */
    return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char* package, char* version) {
    (void)package;
    strcpy(version, CANN_VERSION);
    return ACL_SUCCESS;
}

/* Computing is on the host: the simulated device itself is never busy. */
aclError aclrtGetDeviceUtilizationRate(int32_t device, int32_t* rates) {
    aclError error = check_device(device);
    if (!error) memset(rates, 0, 4 * sizeof *rates); /* cube, vector, AI CPU, memory, in per cent */
    return error;
}
