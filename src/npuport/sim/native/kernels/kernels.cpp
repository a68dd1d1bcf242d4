// The library that Python loads with torch.ops.load_library: torch.ops.npuport_sim.*
// No Python.h and no pybind: a fresh machine has the compiler but often not the headers of Python.
#include <torch/library.h>

#include <map>

#include "boxed.h"
#include "generators.h"
#include "watched.h"

namespace npuport {
namespace {

using Facts = std::shared_ptr<OperatorFacts>;

std::map<std::string, Facts>& installed() {
  static std::map<std::string, Facts> table;
  return table;
}

// Operators that run PyTorch's own kernel: one entry for each key.
std::multimap<std::string, Facts>& composed() {
  static std::multimap<std::string, Facts> table;
  return table;
}

std::vector<std::unique_ptr<torch::Library>>& libraries() {
  static auto* kept = new std::vector<std::unique_ptr<torch::Library>>();  // never freed: the dispatcher outlives static destructors
  return *kept;
}

c10::OperatorHandle find(const std::string& name) {
  const auto dot = name.find('.');
  const c10::OperatorName full(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
  auto handle = c10::Dispatcher::singleton().findOp(full);
  TORCH_CHECK(handle.has_value(), "unknown operator ", name);
  return *handle;
}

Facts facts_of(const c10::OperatorHandle& op, c10::DispatchKey run_as, bool mixes_devices) {
  auto facts = std::make_shared<OperatorFacts>();
  facts->arguments = op.schema().arguments().size();
  facts->returns = op.schema().returns().size();
  facts->draws = op.hasTag(at::Tag::nondeterministic_seeded);
  facts->mixes_devices = mixes_devices;
  facts->divides_in_place = op.schema().name() == "aten::div_" && facts->arguments == 2;
  facts->copies = op.schema().name() == "aten::copy_";
  facts->run_as = run_as;
  if (multiplies_matrices(op.schema().name())) facts->lacking.add(at::kHalf);
  facts->log = log_of(op);
  return facts;
}

torch::Library& library_for(c10::DispatchKey key) {
  libraries().push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__));
  return *libraries().back();
}

std::string short_name(const std::string& name) { return name.substr(name.find("::") + 2); }

bool contains(const std::vector<std::string>& all, const std::string& one) { return std::find(all.begin(), all.end(), one) != all.end(); }

// `indices` says "operator argument".
void install_cpu_kernels(const std::vector<std::string>& names, const std::vector<std::string>& mixing, const std::vector<std::string>& fused,
                         const std::vector<std::string>& indices) {
  Quiet quiet;
  c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  auto& library = library_for(kNpuKey);
  for (const auto& name : names) {
    auto op = find(name);
    const auto& base = op.operator_name().name;
    auto facts = facts_of(op, c10::DispatchKey::CPU, contains(mixing, base));
    if (contains(fused, base)) facts->lacking.add_all();
    for (size_t i = 0; i < op.schema().arguments().size(); ++i)
      if (contains(indices, base + " " + op.schema().arguments()[i].name())) facts->index_argument = i;
    library.impl(short_name(name).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CpuKernel>(facts)));
    installed()[name] = facts;
  }
}

// At each of the keys `at`, operators run the kernel that PyTorch itself has for `run_as`.
void install_own_kernels(const std::vector<std::string>& names, const std::string& run_as, const std::vector<std::string>& at) {
  Quiet quiet;
  c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  for (const auto& key : at) {
    auto& library = library_for(c10::parseDispatchKey(key));
    for (const auto& name : names) {
      auto facts = facts_of(find(name), c10::parseDispatchKey(run_as), true);
      library.impl(short_name(name).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OwnKernel>(facts)));
      composed().emplace(name, facts);
    }
  }
}

// What the simulated chip does not take; a Python kernel of npuport_sim::refused hears of it. Operators without a kernel of ours are skipped.
void refuse(const std::vector<std::string>& names, const std::vector<int64_t>& dtypes, const c10::List<std::vector<int64_t>>& arguments) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto add = [&](const Facts& facts) { facts->refusals.add(static_cast<uint64_t>(dtypes[i]), arguments.get(i)); };
    if (const auto found = installed().find(names[i]); found != installed().end()) add(found->second);
    const auto [first, last] = composed().equal_range(names[i]);
    for (auto at = first; at != last; ++at) add(at->second);
  }
}

void refuse_casts(const std::string& copy, int64_t dtypes, const std::string& cast) {
  installed().at(copy)->refusals.add_cast(static_cast<uint64_t>(dtypes), cast);
}

// From now on computations saturate; the operators in `moving`, and copies that do not cast, compute nothing.
void start_saturation(const std::vector<std::string>& moving) {
  saturates() = true;
  for (const auto& [name, facts] : installed()) {
    const auto base = name.substr(0, name.find('.'));
    if (std::find(moving.begin(), moving.end(), base) != moving.end()) facts->computes = Computes::never;
    if (base == "aten::copy_") facts->computes = Computes::in_casts;
  }
}

bool take_overflow_flag(int64_t device, bool clear) {
  auto& flag = overflow_flag(static_cast<c10::DeviceIndex>(device));
  return clear ? flag.exchange(false) : flag.load();
}

void saturate_result(const at::Tensor& computed, int64_t device) { saturate(computed, static_cast<c10::DeviceIndex>(device)); }

int64_t scalar_type(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.scalar_type()); }

c10::Dict<std::string, int64_t> counts() {
  c10::Dict<std::string, int64_t> result;
  for (const auto& [name, facts] : installed())
    if (const auto calls = facts->calls.load(std::memory_order_relaxed)) result.insert(name, calls);
  return result;
}

void reset_counts() {
  for (const auto& entry : installed()) entry.second->calls = 0;
}

void add_default_generator(const std::optional<at::Generator>& npu) {
  std::lock_guard<std::mutex> guard(generators_lock());
  DefaultGenerator generator;
  generator.npu = npu.value();
  default_generators().push_back(generator);
}

DefaultGenerator& default_generator(int64_t device) {
  TORCH_CHECK(device >= 0 && device < static_cast<int64_t>(default_generators().size()), "no default generator for npu:", device);
  return default_generators()[device];
}

// torch.manual_seed seeds the CPU and every device; torch.npu.manual_seed one device only. The same seed again before anything was drawn
// (the usual pair of lines) changes nothing: the device keeps following the CPU.
void seed_default_generator(int64_t device, int64_t seed, bool with_cpu) {
  std::lock_guard<std::mutex> guard(generators_lock());
  auto& generator = default_generator(device);
  const auto cpu_seed = at::detail::getDefaultCPUGenerator().current_seed();
  const bool repeats_cpu = generator.follows_cpu && !generator.drawn && cpu_seed == static_cast<uint64_t>(seed);
  generator.follows_cpu = with_cpu || repeats_cpu;
  generator.drawn = 0;
  generator.placed = false;
  if (!generator.follows_cpu) generator.own.set_current_seed(static_cast<uint64_t>(seed));
}

at::Generator behind(int64_t device) {
  auto& generator = default_generator(device);
  return generator.follows_cpu ? at::detail::getDefaultCPUGenerator() : generator.own;
}

at::Tensor default_generator_state(int64_t device) {
  std::lock_guard<std::mutex> guard(generators_lock());
  return behind(device).get_state();
}

void set_default_generator_state(int64_t device, const at::Tensor& state) {
  std::lock_guard<std::mutex> guard(generators_lock());
  default_generator(device).placed = false;
  behind(device).set_state(state);
}

std::tuple<int64_t, int64_t> default_generator_place(int64_t device) {
  std::lock_guard<std::mutex> guard(generators_lock());
  const auto where = place_of(default_generator(device));
  return {static_cast<int64_t>(where.seed), static_cast<int64_t>(where.offset)};
}

void place_default_generator(int64_t device, int64_t seed, int64_t offset) {
  std::lock_guard<std::mutex> guard(generators_lock());
  place(default_generator(device), {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)});
}

// Returns what held before.
int64_t set_large_call(int64_t bytes) { return large_call().exchange(bytes); }

at::Tensor alias(const at::Tensor& npu) {
  TORCH_CHECK(npu.device().type() == kNpu, "expected a tensor of the npu device, got one on ", npu.device());
  return cpu_alias(npu);
}

}  // namespace

TORCH_LIBRARY(npuport_sim, library) {
  library.def("install_cpu_kernels(str[] names, str[] mixing, str[] fused, str[] indices) -> ()", &install_cpu_kernels);
  library.def("install_own_kernels(str[] names, str run_as, str[] at) -> ()", &install_own_kernels);
  library.def("refuse(str[] names, int[] dtypes, int[][] arguments) -> ()", &refuse);
  library.def("refuse_casts(str copy, int dtypes, str cast) -> ()", &refuse_casts);
  library.def("refused(str operator, int dtype, int device) -> ()");
  library.def("scalar_type(Tensor tensor) -> int", &scalar_type);
  library.def("start_saturation(str[] moving) -> ()", &start_saturation);
  library.def("take_overflow_flag(int device, bool clear) -> bool", &take_overflow_flag);
  library.def("saturate(Tensor(a!) computed, int device) -> ()", &saturate_result);
  library.def("counts() -> Dict(str, int)", &counts);
  library.def("reset_counts() -> ()", &reset_counts);
  library.def("add_default_generator(Generator? npu) -> ()", &add_default_generator);
  library.def("seed_default_generator(int device, int seed, bool with_cpu) -> ()", &seed_default_generator);
  library.def("default_generator_state(int device) -> Tensor", &default_generator_state);
  library.def("set_default_generator_state(int device, Tensor state) -> ()", &set_default_generator_state);
  library.def("default_generator_place(int device) -> (int, int)", &default_generator_place);
  library.def("place_default_generator(int device, int seed, int offset) -> ()", &place_default_generator);
  library.def("alias(Tensor npu) -> Tensor", &alias);
  library.def("set_large_call(int bytes) -> int", &set_large_call);
  define_recorder(library);
  library.def("recorder_watch(str[] names) -> ()", &recorder_watch);
}

}  // namespace npuport
