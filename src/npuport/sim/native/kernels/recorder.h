// What a run did, for its report. Calls are counted here, by operator, dtypes and shapes, without Python; the registered function of
// Python is called only for what needs the user's line: the first sight of a combination, a synchronisation, a copy between host and
// device, an operator that a real NPU hands to the CPU, a large allocation.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Allocator.h>
#if __has_include(<c10/core/CachingDeviceAllocator.h>)
#include <c10/core/CachingDeviceAllocator.h>
#endif

#include <atomic>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "alias.h"

namespace npuport {

enum class Event : int64_t { kFirstSight = 0, kSynchronization = 1, kCopy = 2, kFallback = 3, kAllocation = 4, kCollective = 5, kWait = 6 };

// Returns the number that Python gave to the user's line.
using Callback = int64_t (*)(int64_t event, const char* operator_name, const char* detail, int64_t bytes);

constexpr size_t kListedShapes = 512;         // of one operator; further ones are only counted
constexpr size_t kCountedShapes = 100000;     // of one operator
constexpr size_t kListedTensors = 4;          // of one argument that is a list
constexpr size_t kSmallAllocation = 16 << 10;  // bytes, whose line is asked for while a run is young
constexpr size_t kLargeAllocation = 1 << 20;   // bytes, whose line is always asked for
constexpr int64_t kYoungSteps = 3, kYoungAllocations = 20000;
constexpr double kPeakGrowth = 1.02;  // what is alive is looked at again when the peak has grown by this much

struct Shapes {
  std::string inputs;  // JSON
  int64_t calls = 0, first_step = 0, site = -1;
};

// What is known of one operator, and what was seen of it.
struct OperatorLog {
  std::string name;
  bool value_on_host = false, shape_on_host = false, by_mask = false, copies = false;
  std::atomic<bool> falls_back{false};

  std::mutex lock;
  std::unordered_map<uint64_t, Shapes> shapes;
  std::unordered_set<uint64_t> unlisted;
  int64_t unlisted_calls = 0;

  void learn(const c10::OperatorHandle& op) {
    std::ostringstream full;
    full << op.operator_name();
    name = full.str();
    const auto& base = op.operator_name().name;
    value_on_host = op.hasTag(at::Tag::data_dependent_output);
    shape_on_host = op.hasTag(at::Tag::dynamic_output_shape);
    by_mask = base == "aten::index" || base == "aten::_unsafe_index" || base == "aten::index_put" || base == "aten::index_put_" ||
              base == "aten::_index_put_impl_" || base == "aten::_unsafe_index_put";
    copies = base == "aten::copy_" || base == "aten::_copy_from" || base == "aten::_foreach_copy_";
  }
};

struct Allocation {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  int64_t bytes, site;
  c10::DeviceIndex device;
};

struct Peak {
  int64_t bytes = 0, step = 0, site = -1, looked_at = 0;
  std::unordered_map<int64_t, std::pair<int64_t, int64_t>> by_site;  // bytes and number of storages alive near the peak
};

class Recorder {
 public:
  std::atomic<Callback> callback{nullptr};
  std::atomic<int64_t> step{0};

  int64_t tell(Event event, const std::string& operator_name, const std::string& detail, int64_t bytes) const {
    const auto call = callback.load(std::memory_order_acquire);
    return call ? call(static_cast<int64_t>(event), operator_name.c_str(), detail.c_str(), bytes) : -1;
  }

  // Asks for the line of a storage that is seen for the first time.
  void see_storage(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kNpu || !tensor.has_storage()) return;
    const auto bytes = tensor.storage().nbytes();
    const bool young = step.load(std::memory_order_relaxed) < kYoungSteps && asked_.load(std::memory_order_relaxed) < kYoungAllocations;
    if (bytes < (young ? kSmallAllocation : kLargeAllocation)) return;
    const auto* key = tensor.storage().unsafeGetStorageImpl();
    {
      std::lock_guard<std::mutex> guard(lock_);
      auto known = allocations_.find(key);
      if (known != allocations_.end() && !known->second.storage.expired()) return;
    }
    asked_.fetch_add(1, std::memory_order_relaxed);
    const auto site = tell(Event::kAllocation, "", "", static_cast<int64_t>(bytes));  // without the lock: it waits for Python's
    const auto device = tensor.device().index();
    const auto current = allocated(device);
    std::lock_guard<std::mutex> guard(lock_);
    allocations_.insert_or_assign(key, Allocation{tensor.storage().getWeakStorageImpl(), static_cast<int64_t>(bytes), site, device});
    if (allocations_.size() > prune_at_) prune();
    see_peak(device, current >= 0 ? current : alive(device), site);
  }

  void clear() {
    std::lock_guard<std::mutex> guard(lock_);
    allocations_.clear();
    peaks_.clear();
    asked_ = 0;
    step = 0;
  }

  void write_memory(std::ostream& out) {
    std::lock_guard<std::mutex> guard(lock_);
    out << '[';
    const char* comma = "";
    for (const auto& [device, peak] : peaks_) {
      out << comma << "{\"device\":" << int(device) << ",\"bytes\":" << peak.bytes << ",\"step\":" << peak.step << ",\"site\":" << peak.site
          << ",\"looked_at\":" << peak.looked_at << ",\"alive\":[";
      const char* inner = "";
      for (const auto& [site, held] : peak.by_site) {
        out << inner << '[' << site << ',' << held.first << ',' << held.second << ']';
        inner = ",";
      }
      out << "]}";
      comma = ",";
    }
    out << ']';
  }

 private:
  static int64_t allocated(c10::DeviceIndex device) {  // -1: this torch does not say
#if __has_include(<c10/core/CachingDeviceAllocator.h>)
    if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(kNpu))) {
      return allocator->getDeviceStats(device).allocated_bytes[0].current;  // 0: of all pools
    }
#endif
    return -1;
  }

  int64_t alive(c10::DeviceIndex device) const {
    int64_t bytes = 0;
    for (const auto& [key, allocation] : allocations_)
      if (allocation.device == device && !allocation.storage.expired()) bytes += allocation.bytes;
    return bytes;
  }

  void see_peak(c10::DeviceIndex device, int64_t current, int64_t site) {
    auto& peak = peaks_[device];
    if (current <= peak.bytes) return;
    peak.bytes = current;
    peak.step = step.load(std::memory_order_relaxed);
    peak.site = site;
    if (current < peak.looked_at * kPeakGrowth) return;
    peak.looked_at = current;
    peak.by_site.clear();
    for (const auto& [key, allocation] : allocations_) {
      if (allocation.device != device || allocation.storage.expired()) continue;
      auto& held = peak.by_site[allocation.site];
      held.first += allocation.bytes;
      held.second += 1;
    }
  }

  void prune() {
    for (auto entry = allocations_.begin(); entry != allocations_.end();) entry = entry->second.storage.expired() ? allocations_.erase(entry) : std::next(entry);
    prune_at_ = std::max<size_t>(1024, 2 * allocations_.size());
  }

  std::mutex lock_;
  std::unordered_map<const void*, Allocation> allocations_;
  std::unordered_map<c10::DeviceIndex, Peak> peaks_;
  std::atomic<int64_t> asked_{0};
  size_t prune_at_ = 1024;
};

inline Recorder& recorder() {
  static auto* one = new Recorder();  // never freed: threads of PyTorch outlive static destructors
  return *one;
}

inline thread_local int recording_depth = 0;

template <typename Use>
void each_tensor(const c10::IValue& value, const Use& use) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) use(value.toTensor(), 0);
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    size_t index = 0;
    for (const auto& item : value.toListRef()) {
      if (item.isTensor() && item.toTensor().defined()) use(item.toTensor(), index);
      ++index;
    }
  }
}

// One call of an operator. What an operator does inside, through other operators of the device, is not counted again.
class Recorded {
 public:
  Recorded(const c10::OperatorHandle& op, OperatorLog& log, const torch::jit::Stack& stack, size_t arguments, size_t returns)
      : stack_(stack), returns_(returns), outermost_(recording_depth++ == 0 && recorder().callback.load(std::memory_order_relaxed)) {
    if (outermost_) count(op, log, torch::jit::last(stack, arguments));
  }

  ~Recorded() {
    --recording_depth;
    if (!outermost_ || std::uncaught_exceptions() != 0 || stack_.size() < returns_) return;
    for (const auto& value : torch::jit::last(stack_, returns_)) each_tensor(value, [](const at::Tensor& t, size_t) { recorder().see_storage(t); });
  }

  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  static uint64_t mix(uint64_t seed, uint64_t value) { return (seed ^ value) * 0x9E3779B97F4A7C15ull ^ (seed >> 29); }

  static uint64_t hash(at::ArrayRef<c10::IValue> arguments) {
    uint64_t result = 14695981039346656037ull;
    size_t position = 0;
    for (const auto& value : arguments) {
      ++position;
      each_tensor(value, [&](const at::Tensor& t, size_t) {
        result = mix(result, position << 16 | static_cast<uint64_t>(t.scalar_type()) << 8 | static_cast<uint64_t>(t.device().type()));
        for (const auto size : t.sizes()) result = mix(result, static_cast<uint64_t>(size) + 1);
      });
    }
    return result;
  }

  // [[name, dtype, shape], …], and a fourth item "cpu" for tensors of the host.
  static std::string describe(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) {
    std::ostringstream out;
    out << '[';
    const char* comma = "";
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto& name = op.schema().arguments()[i].name();
      const bool is_list = !arguments[i].isTensor();
      each_tensor(arguments[i], [&](const at::Tensor& t, size_t index) {
        if (index >= kListedTensors) return;
        out << comma << "[\"" << name;
        if (is_list) out << '[' << index << ']';
        out << "\",\"" << c10::toString(t.scalar_type()) << "\",[";
        const char* inner = "";
        for (const auto size : t.sizes()) out << inner << size, inner = ",";
        out << (t.device().is_cpu() ? "],\"cpu\"]" : "]]");
        comma = ",";
      });
      if (is_list && arguments[i].isList() && arguments[i].toListRef().size() > kListedTensors && (arguments[i].isTensorList() || arguments[i].isOptionalTensorList())) {
        out << comma << "[\"" << name << "[" << arguments[i].toListRef().size() << "]\",\"\",[]]";
        comma = ",";
      }
    }
    out << ']';
    return out.str();
  }

  static void count(const c10::OperatorHandle& op, OperatorLog& log, at::ArrayRef<c10::IValue> arguments) {
    for (const auto& value : arguments) each_tensor(value, [](const at::Tensor& t, size_t) { recorder().see_storage(t); });
    const auto key = hash(arguments);
    if (!count_known(log, key)) add(op, log, key, arguments);
    if (log.falls_back.load(std::memory_order_relaxed)) recorder().tell(Event::kFallback, log.name, "", bytes_of(arguments));
    if (log.copies) {
      see_copy(log, arguments);
    } else if (synchronizes(log, arguments)) {
      recorder().tell(Event::kSynchronization, log.name, log.value_on_host ? "value" : "shape", 0);
    }
  }

  static bool count_known(OperatorLog& log, uint64_t key) {
    std::lock_guard<std::mutex> guard(log.lock);
    auto known = log.shapes.find(key);
    if (known != log.shapes.end()) {
      ++known->second.calls;
      return true;
    }
    if (log.shapes.size() < kListedShapes) return false;
    if (log.unlisted.size() < kCountedShapes) log.unlisted.insert(key);
    ++log.unlisted_calls;
    return true;
  }

  static void add(const c10::OperatorHandle& op, OperatorLog& log, uint64_t key, at::ArrayRef<c10::IValue> arguments) {
    const auto inputs = describe(op, arguments);
    const auto site = recorder().tell(Event::kFirstSight, log.name, "", 0);
    std::lock_guard<std::mutex> guard(log.lock);
    auto& shapes = log.shapes[key];
    if (shapes.calls++ == 0) shapes.inputs = inputs, shapes.first_step = recorder().step.load(std::memory_order_relaxed), shapes.site = site;
  }

  // A value or a shape that the host must know before it can go on. An index that is a mask is first turned into positions.
  static bool synchronizes(const OperatorLog& log, at::ArrayRef<c10::IValue> arguments) {
    if (log.by_mask) return has_mask(arguments);
    if (log.name == "aten::repeat_interleave.Tensor") return arguments.size() < 2 || arguments[1].isNone();
    return log.value_on_host || log.shape_on_host;
  }

  static bool has_mask(at::ArrayRef<c10::IValue> arguments) {
    bool found = false;
    each_tensor(arguments[1], [&](const at::Tensor& t, size_t) { found |= t.scalar_type() == at::kBool || t.scalar_type() == at::kByte; });
    return found;
  }

  static int64_t bytes_of(at::ArrayRef<c10::IValue> arguments) {
    int64_t bytes = 0;
    for (const auto& value : arguments) each_tensor(value, [&](const at::Tensor& t, size_t) { bytes += static_cast<int64_t>(t.nbytes()); });
    return bytes;
  }

  static void see_copy(const OperatorLog& log, at::ArrayRef<c10::IValue> arguments) {
    const bool reversed = log.name == "aten::_copy_from";  // its first argument is the source
    const bool non_blocking = arguments.size() > 2 && arguments[2].isBool() && arguments[2].toBool();
    std::vector<at::Tensor> to, from;
    each_tensor(arguments[reversed ? 1 : 0], [&](const at::Tensor& t, size_t) { to.push_back(t); });
    each_tensor(arguments[reversed ? 0 : 1], [&](const at::Tensor& t, size_t) { from.push_back(t); });
    for (size_t i = 0; i < to.size() && i < from.size(); ++i) {
      if (to[i].device() == from[i].device()) continue;
      const bool to_host = to[i].device().is_cpu(), from_host = from[i].device().is_cpu();
      const auto& host = to_host ? to[i] : from[i];
      const bool pinned = (to_host || from_host) && host.has_storage() && host.is_pinned();
      std::string detail = to_host ? "device to host" : from_host ? "host to device" : "device to device";
      if (pinned) detail += ",pinned";
      if (non_blocking) detail += ",non_blocking";
      recorder().tell(Event::kCopy, log.name, detail, static_cast<int64_t>(from[i].nbytes()));
    }
  }

  const torch::jit::Stack& stack_;
  size_t returns_;
  bool outermost_;
};

inline void write_operator(std::ostream& out, OperatorLog& log, const char*& comma) {
  std::lock_guard<std::mutex> guard(log.lock);
  if (log.shapes.empty()) return;
  out << comma << "{\"name\":\"" << log.name << "\",\"unlisted_shapes\":" << log.unlisted.size() << ",\"unlisted_calls\":" << log.unlisted_calls
      << ",\"shapes\":[";
  const char* inner = "";
  for (const auto& [key, shapes] : log.shapes) {
    out << inner << "{\"inputs\":" << shapes.inputs << ",\"calls\":" << shapes.calls << ",\"first_step\":" << shapes.first_step
        << ",\"site\":" << shapes.site << '}';
    inner = ",";
  }
  out << "]}";
  comma = ",";
}

inline void clear(OperatorLog& log) {
  std::lock_guard<std::mutex> guard(log.lock);
  log.shapes.clear();
  log.unlisted.clear();
  log.unlisted_calls = 0;
}

}  // namespace npuport
