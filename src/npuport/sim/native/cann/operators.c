/* Compute calls. torch_npu reaches CANN's operators only where no simulated kernel stands in front of them, so each call here is an
 * operator the simulation lacks. It fails and names the operator; success would leave the result unwritten. */
#include "stand_in.h"

typedef struct { int type, format, dimensions; int64_t shape[16]; } TensorDescription;

void* aclCreateTensorDesc(int type, int dimensions, const int64_t* shape, int format) {
    if (dimensions < 0 || dimensions > 16) return NULL;
    TensorDescription* description = calloc(1, sizeof *description);
    *description = (TensorDescription){.type = type, .format = format, .dimensions = dimensions};
    if (dimensions) memcpy(description->shape, shape, (size_t)dimensions * sizeof *shape);
    return description;
}

void aclDestroyTensorDesc(void* description) { free(description); }

aclError aclSetTensorShape(void* handle, int dimensions, const int64_t* shape) {
    TensorDescription* description = handle;
    if (dimensions < 0 || dimensions > 16) return npuport_fail(ACL_ERROR_INVALID_PARAM, "%d dimensions", dimensions);
    description->dimensions = dimensions;
    if (dimensions) memcpy(description->shape, shape, (size_t)dimensions * sizeof *shape);
    return ACL_SUCCESS;
}

aclError aclSetTensorFormat(void* handle, int format) {
    ((TensorDescription*)handle)->format = format;
    return ACL_SUCCESS;
}

aclError aclSetTensorPlaceMent(void* handle, int memory) {
    (void)handle, (void)memory;
    return ACL_SUCCESS;
}

void aclSetTensorDescName(void* handle, const char* name) { (void)handle, (void)name; }
int aclGetTensorDescType(const void* handle) { return ((const TensorDescription*)handle)->type; }
int aclGetTensorDescFormat(const void* handle) { return ((const TensorDescription*)handle)->format; }
size_t aclGetTensorDescNumDims(const void* handle) { return (size_t)((const TensorDescription*)handle)->dimensions; }

aclError aclGetTensorDescDimV2(const void* handle, size_t index, int64_t* size) {
    const TensorDescription* description = handle;
    if (index >= (size_t)description->dimensions) return npuport_fail(ACL_ERROR_INVALID_PARAM, "dimension %zu of %d", index, description->dimensions);
    *size = description->shape[index];
    return ACL_SUCCESS;
}

typedef struct { void* data; size_t size; } DataBuffer;

void* aclCreateDataBuffer(void* data, size_t size) {
    DataBuffer* buffer = malloc(sizeof *buffer);
    *buffer = (DataBuffer){data, size};
    return buffer;
}

aclError aclDestroyDataBuffer(void* buffer) {
    free(buffer);
    return ACL_SUCCESS;
}

/* Attributes only matter to the operator, and the operator fails. */
void* aclopCreateAttr(void) { return malloc(1); }
void aclopDestroyAttr(void* attributes) { free(attributes); }
#define ATTRIBUTE(kind) \
    aclError aclopSetAttr##kind(void* attributes, const char* name) { return (void)attributes, (void)name, ACL_SUCCESS; }
ATTRIBUTE(Bool)
ATTRIBUTE(DataType)
ATTRIBUTE(Float)
ATTRIBUTE(Int)
ATTRIBUTE(ListBool)
ATTRIBUTE(ListFloat)
ATTRIBUTE(ListInt)
ATTRIBUTE(ListListInt)
ATTRIBUTE(String)

/* The memory format of a tensor is kept by torch_npu; here its elements stay in the order of the base format, at the start of the memory, so
 * that PyTorch's CPU kernels can read them. Changing the format is a copy, and the padding of a format stays empty. */
static bool keeps_elements(const char* name) {
    return strcmp(name, "TransData") == 0 || strcmp(name, "Identity") == 0;
}

aclError aclopCompileAndExecute(const char* name, int inputs, void* const in_descriptions[], void* const in[], int outputs,
                                void* const out_descriptions[], void* const out[]) {
    (void)in_descriptions, (void)out_descriptions;
    if (!keeps_elements(name) || inputs < 1 || outputs < 1) return npuport_no_reference(name);
    const DataBuffer *from = in[0], *to = out[0];
    size_t bytes = from->size < to->size ? from->size : to->size;
    if (bytes && from->data != to->data) memmove(to->data, from->data, bytes);
    return ACL_SUCCESS;
}

aclError aclopCompileAndExecuteV2(const char* name, int inputs, void* in_descriptions[], void* in[], int outputs, void* out_descriptions[],
                                  void* out[]) {
    return aclopCompileAndExecute(name, inputs, in_descriptions, in, outputs, out_descriptions, out);
}
