/* The profiler's side of CANN. There is no device to profile: registration and reports are accepted and lead nowhere, so that code which
 * profiles runs; the device part of its result is empty. */
#include "stand_in.h"

#include <time.h>

uint64_t MsprofGetHashId(const char* text, size_t length) {
    uint64_t hash = 1469598103934665603ULL; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211ULL;
    return hash;
}

uint64_t MsprofSysCycleTime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

int32_t MsprofRegisterCallback(uint32_t module, void* handler) { return (void)module, (void)handler, 0; }
int32_t MsprofReportAdditionalInfo(uint32_t aging, const void* data, uint32_t length) { return (void)aging, (void)data, (void)length, 0; }
int32_t MsprofReportApi(uint32_t aging, const void* data) { return (void)aging, (void)data, 0; }
int32_t MsprofReportCompactInfo(uint32_t aging, const void* data, uint32_t length) { return (void)aging, (void)data, (void)length, 0; }

aclError aclprofInit(const char* path, size_t length) { return (void)path, (void)length, ACL_SUCCESS; }
aclError aclprofFinalize(void) { return ACL_SUCCESS; }
void* aclprofCreateConfig(void) { return malloc(1); }
aclError aclprofDestroyConfig(void* configuration) { return free(configuration), ACL_SUCCESS; }
aclError aclprofSetConfig(int type, const char* value, size_t length) { return (void)type, (void)value, (void)length, ACL_SUCCESS; }
aclError aclprofStart(const void* configuration) { return (void)configuration, ACL_SUCCESS; }
aclError aclprofWarmup(const void* configuration) { return (void)configuration, ACL_SUCCESS; }
aclError aclprofStop(const void* configuration) { return (void)configuration, ACL_SUCCESS; }
void* aclprofCreateStepInfo(void) { return malloc(1); }
void aclprofDestroyStepInfo(void* step) { free(step); }
aclError aclprofGetStepTimestamp(void* step, int tag, void* stream) { return (void)step, (void)tag, (void)stream, ACL_SUCCESS; }

/* Marks for tools (libms_tools_ext). No tool listens, so a range and a domain are none, as without a tool on a device. */
void mstxMarkA(const char* message, void* stream) { (void)message, (void)stream; }
uint64_t mstxRangeStartA(const char* message, void* stream) { return (void)message, (void)stream, 0; }
void mstxRangeEnd(uint64_t range) { (void)range; }
void* mstxDomainCreateA(const char* name) { return (void)name, NULL; }
void mstxDomainDestroy(void* domain) { (void)domain; }
void mstxDomainMarkA(void* domain, const char* message, void* stream) { (void)domain, (void)message, (void)stream; }
uint64_t mstxDomainRangeStartA(void* domain, const char* message, void* stream) { return (void)domain, (void)message, (void)stream, 0; }
void mstxDomainRangeEnd(void* domain, uint64_t range) { (void)domain, (void)range; }
void* mstxMemHeapRegister(void* domain, const void* heap) { return (void)domain, (void)heap, NULL; }
void mstxMemHeapUnregister(void* domain, void* heap) { (void)domain, (void)heap; }
void mstxMemRegionsRegister(void* domain, const void* regions) { (void)domain, (void)regions; }
void mstxMemRegionsUnregister(void* domain, const void* regions) { (void)domain, (void)regions; }

aclError aclmdlInitDump(void) { return npuport_not_simulated("aclmdlInitDump (dumping on the device)"); }
aclError aclmdlSetDump(const char* path) { return (void)path, npuport_not_simulated("aclmdlSetDump (dumping on the device)"); }
aclError aclmdlFinalizeDump(void) { return ACL_SUCCESS; }

/* The driver (libascend_hal): a version below every one that promises something, and no clock of a device. */
int halGetAPIVersion(int* version) { return *version = 0, 0; }
int halGetDeviceInfo(uint32_t device, int module, int information, int64_t* value) { return (void)device, (void)module, (void)information, *value = 0, 1; }
