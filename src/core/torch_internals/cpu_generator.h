#pragma once

#include <ATen/core/Generator.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace posenc::torch_internals {

/// The state of at::mt19937: the words of the current block, and two counters.
struct EngineState {
  std::array<uint32_t, 624> words;
  int left;       ///< number of words before the next block, plus one
  uint32_t next;  ///< index of the next word

  bool operator==(const EngineState& other) const {
    return left == other.left && next == other.next && words == other.words;
  }
};

/// ATen's generator of the CPU, locked for the lifetime of this object, as ATen locks it while it
/// draws a tensor.
class CpuGenerator {
 public:
  explicit CpuGenerator(const at::Generator& generator);

  /// The next number, as ATen seeds MKL's generators with it.
  uint32_t random();
  /// The next number of 64 bits.
  uint64_t random64();

  EngineState engine() const;
  void set_engine(const EngineState& state);

 private:
  at::Generator generator_;
  std::unique_lock<std::mutex> lock_;
};

/// The generator that operations use unless they are given one.
const at::Generator& default_cpu_generator();
/// A new generator with this seed.
at::Generator seeded_cpu_generator(uint64_t seed);

}  // namespace posenc::torch_internals
