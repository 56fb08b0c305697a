#include "positions/functional/dropout/generator.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"

namespace posenc::functional {
namespace kernel = kernels::embed;

DropoutBits::DropoutBits(const at::Generator& generator, Source source, double keep, bool wide,
                         uint8_t* to)
    : generator_(generator), writer_{to} {
  const auto& use = kernels::chosen().random;
  if (source == Source::Mcg31) {
    const uint64_t seed = wide ? generator_.random64() : generator_.random();
    mcg31_.emplace(static_cast<uint32_t>(seed), keep, use);
    return;
  }
  engine_ = generator_.engine();
  state_.words = engine_.words.data();
  TORCH_CHECK(state_.set_counts(engine_.left, engine_.next),
              "[dropout] the default generator's counters must agree. Got left ", engine_.left,
              " and next ", engine_.next, ", set while dropout was at work");
  mt19937_.emplace(&state_, keep, use);
}

DropoutBits::DropoutBits(double keep, at::ScalarType dtype, uint8_t* to)
    : DropoutBits(torch_internals::default_cpu_generator(), found(dtype).source, keep,
                  dtype == at::kDouble, to) {}

DropoutBits::~DropoutBits() {
  if (!mt19937_) return;
  engine_.next = static_cast<uint32_t>(state_.next);
  engine_.left = state_.left();
  generator_.set_engine(engine_);
}

void DropoutBits::draw(int64_t elements) {
  mt19937_ ? mt19937_->write(elements, writer_) : mcg31_->write(elements, writer_);
  writer_.finish();
}

// Whether the masks drawn here have ATen's bits in memory order, and leave ATen's final state, for
// a sample shaped like `like`. Starts at an odd position of the generator.
bool DropoutBits::draws(Source source, at::ScalarType dtype, const at::Tensor& like) {
  constexpr double kKeep = 0.7;
  const at::Generator theirs = torch_internals::seeded_cpu_generator(20170612);
  torch_internals::CpuGenerator(theirs).random();
  const at::Generator ours = theirs.clone();
  const at::Tensor drawn = at::empty_like(like).bernoulli_(kKeep, theirs);
  const at::Tensor sample = drawn.to(at::kFloat);  // in the same layout
  const float* expected = sample.const_data_ptr<float>();
  std::vector<uint8_t> bits(static_cast<size_t>(mask_bytes(sample.numel())));
  DropoutBits(ours, source, kKeep, dtype == at::kDouble, bits.data()).draw(sample.numel());
  bool equal = torch_internals::CpuGenerator(ours).engine() ==
               torch_internals::CpuGenerator(theirs).engine();
  for (int64_t i = 0; i < sample.numel(); ++i)
    equal = equal && ((bits[i >> 3] >> (i & 7) & 1) != 0) == (expected[i] != 0.0f);
  return equal;
}

// The samples are large enough to span several blocks of the generator.
DropoutBits::Found DropoutBits::find(at::ScalarType dtype) {
  at::NoGradGuard no_grad;
  const at::Tensor plain = at::empty({43, 71}, at::TensorOptions(dtype));
  for (const Source source : {Source::Mt19937, Source::Mcg31})
    if (draws(source, dtype, plain)) return {source, draws(source, dtype, plain.t())};
  return {};
}

const DropoutBits::Found& DropoutBits::found(at::ScalarType dtype) {
  static const Found of_double = find(at::kDouble), of_float = find(at::kFloat),
                     of_bfloat16 = find(at::kBFloat16), of_half = find(at::kHalf), none;
  switch (dtype) {
    case at::kDouble: return of_double;
    case at::kFloat: return of_float;
    case at::kBFloat16: return of_bfloat16;
    case at::kHalf: return of_half;
    default: return none;
  }
}

bool has_dropout_bits(at::ScalarType dtype, bool contiguous) {
  const DropoutBits::Found& found = DropoutBits::found(dtype);
  return found.source != DropoutBits::Source::None && (contiguous || found.any_layout);
}

bool can_draw_dropout_bits(at::ScalarType dtype, bool contiguous) {
  if (!has_dropout_bits(dtype, contiguous)) return false;
  if (DropoutBits::found(dtype).source != DropoutBits::Source::Mt19937) return true;
  const torch_internals::EngineState engine =
      torch_internals::CpuGenerator(torch_internals::default_cpu_generator()).engine();
  return Mt19937().set_counts(engine.left, engine.next);
}

// A chunk is consumed only after the next one has been drawn, because a kernel may read that
// chunk's first bits. The drawing thread helps to consume once it has drawn everything.
void draw_while_used(DropoutBits& bits, int64_t elements, int64_t chunk,
                     const std::function<void(int64_t, int64_t)>& use) {
  const int64_t chunks = (elements + chunk - 1) / chunk;
  std::atomic<int64_t> drawn{0}, taken{0};
  const auto consume = [&] {
    for (int64_t c = taken++; c < chunks; c = taken++) {
      while (drawn.load(std::memory_order_acquire) < std::min(c + 2, chunks))
        std::this_thread::yield();
      use(c * chunk, std::min((c + 1) * chunk, elements));
    }
  };
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = 0; begin == 0 && c < chunks; ++c) {
      bits.draw(std::min(chunk, elements - c * chunk));
      drawn.store(c + 1, std::memory_order_release);
    }
    for (int64_t thread = begin; thread < end; ++thread) consume();
  });
}

void run_dropout(kernel::Type type, const kernel::DropoutRequest& request, int64_t elements) {
  const auto drop = kernels::chosen().dropout.drop[static_cast<int>(type)];
  if (!worth_threads(elements)) return drop(request, 0, elements);
  const int64_t chunks = (elements + kDropoutChunk - 1) / kDropoutChunk;
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    drop(request, begin * kDropoutChunk, std::min(end * kDropoutChunk, elements));
  });
}

double kept_factor(double keep, at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1.0 / keep;
  const float factor = 1.0f / static_cast<float>(keep);
  if (dtype == at::kFloat) return factor;
  return dtype == at::kHalf ? static_cast<float>(at::Half(factor))
                            : static_cast<float>(at::BFloat16(factor));
}

at::Tensor noise_of(const at::Tensor& mask, double factor, const at::Tensor& like) {
  at::Tensor noise = at::empty({like.numel()}, at::TensorOptions(at::kDouble));
  double* to = noise.data_ptr<double>();
  const uint8_t* bits = mask.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < noise.numel(); ++i)
    to[i] = (bits[i >> 3] >> (i & 7) & 1) != 0 ? factor : 0.0;
  return noise.to(like.scalar_type()).as_strided(like.sizes(), like.strides());
}

}  // namespace posenc::functional
