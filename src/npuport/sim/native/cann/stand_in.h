/* What the files of the stand-in for CANN share. The interface is CANN's C ABI as torch_npu calls it; numbers and layouts are those of
 * the headers that torch_npu ships (torch_npu/include/acl). They are written out here, so that one source serves every version. */
#ifndef NPUPORT_STAND_IN_H
#define NPUPORT_STAND_IN_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int aclError;

enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_INVALID_PARAM = 100000,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_FEATURE_UNSUPPORTED = 200006,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_INVALID_DEVICEID = 107001,
    ACL_ERROR_RT_CONTEXT_NULL = 107002,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_MEMORY_FREE = 207002,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
    ACL_ERROR_RT_INTERNAL_TASK_TIMEOUT = 507048,
    ACL_ERROR_RT_INTERNAL_TASK_EXCEPTION = 507049,
};

enum { MAX_DEVICES = 64 };

/* errors.c */
aclError npuport_fail(aclError code, const char* format, ...) __attribute__((format(printf, 2, 3)));
aclError npuport_no_reference(const char* operator_name);
aclError npuport_not_simulated(const char* function);
_Noreturn void npuport_abort(const char* function);
const char* aclGetRecentErrMsg(void);

/* device.c */
int npuport_device_count(void);
int npuport_current_device(void); /* -1 when this thread has none */
int npuport_physical_device(int device); /* the machine's number of a device that this process may see under another */
size_t npuport_memory_total(void);
double npuport_now_ms(void);
aclError aclrtSetDevice(int32_t device);
const char* aclrtGetSocName(void);

/* observer.c */
void npuport_waits(const char* function); /* of the program, which waits for the device in it */

/* memory.c */
aclError npuport_share_memory(void* start, int* file); /* the file behind a block, which it gets at the first time */
void npuport_know_memory(void* start, size_t size);    /* of another process; it counts there */
void npuport_unknow_memory(void* start);
int npuport_physical_file(const void* handle);
void* npuport_imported_physical(int file, size_t size, int device);

/* ipc.c */
void npuport_end_export(void* start);

/* ledger.c */
bool npuport_take_memory(int device, size_t size); /* false where the device has not so much left */
void npuport_give_memory_back(int device, size_t size);
size_t npuport_memory_used(int device); /* by all processes of the run */

#endif
