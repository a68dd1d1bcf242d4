// Random numbers. The default generator of every npu device follows the CPU's default generator, so that a run draws what the same
// run on the CPU draws; a device that was seeded on its own, and every explicit generator, has a CPU generator of its own.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace npuport {

struct DefaultGenerator {
  at::Generator npu;
  bool follows_cpu = true;
  uint64_t drawn = 0;  // calls of operators since it was last seeded
  bool placed = false;  // by seed and offset, as DTensor places the generators of all ranks
  uint64_t seed = 0, offset = 0;
  at::Generator own = at::detail::createCPUGenerator();
};

struct ExplicitGenerator {
  at::Generator npu;  // held, so that its address stays its name
  at::Generator cpu;
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// torch_npu wants offsets in multiples of four.
constexpr uint64_t kOffsetPerDraw = 4;

inline std::mutex& generators_lock() {
  static std::mutex lock;
  return lock;
}
inline std::vector<DefaultGenerator>& default_generators() {
  static std::vector<DefaultGenerator> generators;
  return generators;
}
inline std::unordered_map<const void*, ExplicitGenerator>& explicit_generators() {
  static std::unordered_map<const void*, ExplicitGenerator> generators;
  return generators;
}

inline at::mt19937 engine_of(const at::Generator& generator) { return at::check_generator<at::CPUGeneratorImpl>(generator)->engine(); }

// How many 32-bit numbers `after` is ahead of `before`.
inline uint64_t draws_between(at::mt19937 before, const at::mt19937& after) {
  const auto target = after.data();
  uint64_t draws = 0;
  for (;; ++draws, before()) {
    const auto& now = before.data();
    if (now.left_ == target.left_ && now.next_ == target.next_ && now.state_ == target.state_) return draws;
  }
}

inline void restart(ExplicitGenerator& generator) {
  generator.seed = generator.npu.current_seed();
  generator.offset = generator.npu.unsafeGetGeneratorImpl()->get_offset();
  auto engine = at::mt19937(generator.seed);
  for (uint64_t draw = 0; draw < generator.offset / kOffsetPerDraw; ++draw) engine();
  generator.cpu.set_current_seed(generator.seed);
  at::check_generator<at::CPUGeneratorImpl>(generator.cpu)->set_engine(engine);
}

inline uint64_t mixed(uint64_t word) {  // splitmix64
  word += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}

// Where a default generator stands, as a real NPU says it: a seed, and an offset into what it gives. One that follows the CPU has no such
// place; it gets a seed that only depends on the CPU generator's state.
struct Place { uint64_t seed, offset; };

inline Place place_of(const DefaultGenerator& generator) {
  if (generator.placed) return {generator.seed, generator.offset + kOffsetPerDraw * generator.drawn};
  auto engine = engine_of(generator.follows_cpu ? at::detail::getDefaultCPUGenerator() : generator.own);
  const uint64_t high = engine(), low = engine();
  return {mixed(high << 32 | low), 0};
}

// The numbers at another offset are others, as on an NPU, though not those that it would have come to by drawing.
inline void place(DefaultGenerator& generator, Place place) {
  generator.follows_cpu = false;
  generator.placed = true;
  generator.seed = place.seed;
  generator.offset = place.offset;
  generator.drawn = 0;
  generator.own.set_current_seed(mixed(place.seed ^ mixed(place.offset)));
}

// The CPU generator that stands behind an npu generator argument of one operator call, for the time of that call.
class GeneratorOfCall {
 public:
  explicit GeneratorOfCall(const at::Generator& npu) {
    std::lock_guard<std::mutex> guard(generators_lock());
    for (auto& known : default_generators()) {
      if (known.npu.unsafeGetGeneratorImpl() != npu.unsafeGetGeneratorImpl()) continue;
      ++known.drawn;
      cpu_ = known.follows_cpu ? at::detail::getDefaultCPUGenerator() : known.own;
      return;
    }
    auto& table = explicit_generators();
    for (auto entry = table.begin(); entry != table.end();) {  // only this table still holds it: the program has let go of it
      entry = entry->second.npu.getIntrusivePtr().use_count() == 1 && !(entry->second.npu == npu) ? table.erase(entry) : std::next(entry);
    }
    auto& generator = table[npu.unsafeGetGeneratorImpl()];
    const bool is_new = !generator.npu.defined();
    if (is_new) {
      generator.npu = npu;
      generator.cpu = at::detail::createCPUGenerator();
    }
    // A seed or a state set from outside shows as a changed seed or offset.
    if (is_new || generator.seed != npu.current_seed() || generator.offset != npu.unsafeGetGeneratorImpl()->get_offset()) restart(generator);
    cpu_ = generator.cpu;
    explicit_ = npu;
    before_ = engine_of(cpu_);
  }

  const at::Generator& cpu() const { return cpu_; }

  // Write back how far the call has drawn, so that get_state() of the npu generator says where it stands.
  void finish() {
    if (!explicit_.defined()) return;
    std::lock_guard<std::mutex> guard(generators_lock());
    auto& generator = explicit_generators()[explicit_.unsafeGetGeneratorImpl()];
    generator.offset += kOffsetPerDraw * draws_between(before_, engine_of(cpu_));
    explicit_.unsafeGetGeneratorImpl()->set_offset(generator.offset);
  }

 private:
  at::Generator cpu_, explicit_;
  at::mt19937 before_;
};

// For one call of an operator that draws and names no generator: if the device was seeded on its own, the CPU's default generator takes
// the place of the device's, and gets its own state back afterwards.
class DefaultGeneratorOfCall {
 public:
  DefaultGeneratorOfCall(bool draws, c10::DeviceIndex device) {
    if (!draws) return;
    std::lock_guard<std::mutex> guard(generators_lock());
    auto& all = default_generators();
    if (device < 0 || static_cast<size_t>(device) >= all.size()) return;
    ++all[device].drawn;
    if (all[device].follows_cpu) return;
    own_ = all[device].own;
    auto shared = at::detail::getDefaultCPUGenerator();
    cpu_state_ = shared.get_state();
    shared.set_state(own_.get_state());
  }
  ~DefaultGeneratorOfCall() {
    if (!own_.defined()) return;
    auto shared = at::detail::getDefaultCPUGenerator();
    own_.set_state(shared.get_state());
    shared.set_state(cpu_state_);
  }
  DefaultGeneratorOfCall(const DefaultGeneratorOfCall&) = delete;
  DefaultGeneratorOfCall& operator=(const DefaultGeneratorOfCall&) = delete;

 private:
  at::Generator own_;
  at::Tensor cpu_state_;
};

}  // namespace npuport
