#include "core/torch_internals/cpu_generator.h"

#include <ATen/CPUGeneratorImpl.h>

namespace posenc::torch_internals {
namespace {

static_assert(at::MERSENNE_STATE_N == std::tuple_size_v<decltype(EngineState::words)>);

at::CPUGeneratorImpl& implementation(const at::Generator& generator) {
  return *static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
}

}  // namespace

CpuGenerator::CpuGenerator(const at::Generator& generator)
    : generator_(generator), lock_(generator_.mutex()) {}

uint32_t CpuGenerator::random() { return implementation(generator_).random(); }
uint64_t CpuGenerator::random64() { return implementation(generator_).random64(); }

EngineState CpuGenerator::engine() const {
  const auto data = implementation(generator_).engine().data();
  return {data.state_, data.left_, data.next_};
}

void CpuGenerator::set_engine(const EngineState& state) {
  auto engine = implementation(generator_).engine();  // keeps the seed
  auto data = engine.data();
  data.state_ = state.words;
  data.left_ = state.left;
  data.next_ = state.next;
  engine.set_data(data);
  implementation(generator_).set_engine(engine);
}

const at::Generator& default_cpu_generator() { return at::detail::getDefaultCPUGenerator(); }
at::Generator seeded_cpu_generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

}  // namespace posenc::torch_internals
