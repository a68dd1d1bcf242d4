/* Operators of CANN that torch_npu calls itself, past PyTorch's dispatcher, where ordinary training meets them: ProcessGroupHCCL pads what
 * it sends to 512 bytes (aclnnConstantPadNd). The generated rest of libopapi fails and names the operator.
 *
 * The life of a call: torch_npu makes argument objects, xGetWorkspaceSize checks them and gives an executor, x runs it. */
#include "queue.h"

enum { MAX_DIMENSIONS = 16 };

typedef struct { int type, dimensions; int64_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS]; char* data; /* first element */ } aclTensor;
typedef struct { uint64_t count; int64_t values[]; } aclIntArray;
typedef struct { int type; char value[16]; } aclScalar;

/* Sizes by aclDataType: float, fp16, int8, int32, uint8, -, int16, uint16, uint32, int64, uint64, double, bool, -, -, -, c64, c128, -, bf16 */
static size_t element_bytes(int type) {
    static const size_t bytes[28] = {4, 2, 1, 4, 1, 0, 2, 2, 4, 8, 8, 8, 1, 0, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    return type >= 0 && type < 28 ? bytes[type] : 0;
}

void* aclCreateTensor(const int64_t* shape, uint64_t dimensions, int type, const int64_t* strides, int64_t offset, int format,
                      const int64_t* storage_shape, uint64_t storage_dimensions, void* data) {
    (void)format, (void)storage_shape, (void)storage_dimensions;
    if (dimensions > MAX_DIMENSIONS) return NULL;
    aclTensor* tensor = calloc(1, sizeof *tensor);
    tensor->type = type;
    tensor->dimensions = (int)dimensions;
    if (dimensions) memcpy(tensor->shape, shape, dimensions * sizeof *shape);
    if (dimensions) memcpy(tensor->strides, strides, dimensions * sizeof *strides);
    tensor->data = (char*)data + offset * (int64_t)element_bytes(type);
    return tensor;
}

void* aclCreateIntArray(const int64_t* values, uint64_t count) {
    aclIntArray* array = malloc(sizeof *array + count * sizeof *values);
    array->count = count;
    if (count) memcpy(array->values, values, count * sizeof *values);
    return array;
}

void* aclCreateScalar(void* value, int type) {
    aclScalar* scalar = calloc(1, sizeof *scalar);
    scalar->type = type;
    memcpy(scalar->value, value, element_bytes(type));
    return scalar;
}

aclError aclDestroyTensor(const void* tensor) { return free((void*)tensor), ACL_SUCCESS; }
aclError aclDestroyIntArray(const void* array) { return free((void*)array), ACL_SUCCESS; }
aclError aclDestroyScalar(const void* scalar) { return free((void*)scalar), ACL_SUCCESS; }

typedef struct { aclTensor in, out; int64_t before[MAX_DIMENSIONS]; char fill[16]; } Padding;

static bool is_zero(const aclScalar* scalar) {
    static const char zeros[16];
    return memcmp(scalar->value, zeros, sizeof zeros) == 0;
}

/* pads: two numbers for each dimension, the last dimension first. Only what torch_npu itself asks for: filling with zero, or in the type of the data. */
aclError aclnnConstantPadNdGetWorkspaceSize(const aclTensor* in, const aclIntArray* pads, const aclScalar* value, const aclTensor* out,
                                            uint64_t* workspace, void** executor) {
    if (in->type != out->type || !element_bytes(in->type) || (value->type != in->type && !is_zero(value)))
        return npuport_no_reference("aclnnConstantPadNd with these data types");
    Padding* padding = calloc(1, sizeof *padding);
    padding->in = *in;
    padding->out = *out;
    for (uint64_t i = 0; i < pads->count / 2 && i < (uint64_t)in->dimensions; i++) padding->before[in->dimensions - 1 - (int)i] = pads->values[2 * i];
    memcpy(padding->fill, value->value, sizeof padding->fill);
    *workspace = 0;
    *executor = padding;
    return ACL_SUCCESS;
}

static void pad(const Padding* padding, int dimension, const char* in, char* out) {
    size_t width = element_bytes(padding->in.type);
    if (dimension == padding->in.dimensions) {
        memcpy(out, in ? in : padding->fill, width);
        return;
    }
    for (int64_t i = 0; i < padding->out.shape[dimension]; i++) {
        int64_t from = i - padding->before[dimension];
        bool inside = in && from >= 0 && from < padding->in.shape[dimension];
        const char* source = inside ? in + from * padding->in.strides[dimension] * (int64_t)width : NULL;
        pad(padding, dimension + 1, source, out + i * padding->out.strides[dimension] * (int64_t)width);
    }
}

static aclError run_padding(void* argument) {
    Padding* padding = argument;
    pad(padding, 0, padding->in.data, padding->out.data);
    free(padding);
    return ACL_SUCCESS;
}

aclError aclnnConstantPadNd(void* workspace, uint64_t bytes, void* executor, void* stream) {
    (void)workspace, (void)bytes;
    return npuport_follow(npuport_stream(stream), run_padding, executor);
}

/* A delay on the device (torch.npu._sleep): times are not simulated. */
aclError aclnnSleepGetWorkspaceSize(int64_t cycles, uint64_t* workspace, void** executor) {
    static char nothing;
    if (cycles < 0) return npuport_fail(ACL_ERROR_INVALID_PARAM, "aclnnSleep: %lld cycles", (long long)cycles);
    *workspace = 0;
    *executor = &nothing;
    return ACL_SUCCESS;
}

aclError aclnnSleep(void* workspace, uint64_t bytes, void* executor, void* stream) {
    (void)workspace, (void)bytes, (void)executor, (void)stream;
    return ACL_SUCCESS;
}
