// functional::fourier_mixing() of the whole batch.

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "inference/layers/mixers.h"
#include "transformer/functional/fourier_mixing.h"

namespace posenc::inference {
namespace {

class FourierRun : public MixerRun {
 public:
  explicit FourierRun(const BatchRows& batch)
      : mixed_(at::empty({batch.packing.batch, batch.packing.length, batch.stream.width},
                         at::kFloat)) {}

  // A sequence at a time: their complex numbers are few then.
  void mix(std::size_t, const float* input, const SequenceRange& sequences) override {
    auto* const data = const_cast<float*>(input);  // which is only read
    const at::Tensor rows = at::from_blob(data, mixed_.sizes(), at::TensorOptions(at::kFloat));
    for (int64_t b = sequences.begin; b < sequences.end; ++b)
      mixed_.narrow(0, b, 1).copy_(functional::fourier_mixing(rows.narrow(0, b, 1)));
  }

  void write(std::size_t, const Stream& part, int64_t begin, const Norm&,
             const Norm& after) override {
    add(part, mixed_.const_data_ptr<float>() + begin * part.width, after);
  }

 private:
  const at::Tensor mixed_;
};

class FourierMixers : public Mixers {
 public:
  bool takes_parts() const override { return true; }
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override {
    return std::make_unique<FourierRun>(batch);
  }
};

}  // namespace

Block freeze_step(const blocks::Fourier&, StackFreezer& stack) {
  TORCH_INTERNAL_ASSERT(stack.block().post == nullptr, "a norm after Fourier's transform");
  stack.layers.sees_padding = stack.layers.needs_key_masks = true;
  return {.mixers = &stack.layers.mixers<FourierMixers>()};
}

}  // namespace posenc::inference
