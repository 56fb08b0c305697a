// The blocks of layers with an input of their own, which the stack makes of its input.

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "base/platform/memory.h"
#include "inference/layers/mixers.h"

namespace posenc::inference {
namespace {

struct PerLayerStep {
  Projection gate, projection;  // (P, D), (D, P)
  Projection input;             // (P, D), of the stack's input
  Activation activation;

  RowFormat row_format() const { return gate.row_format(); }
};

class PerLayerMixers : public StepMixers<PerLayerStep> {
 public:
  PerLayerMixers(Norm norm, int64_t width) : norm(std::move(norm)), width(width) {}
  bool mixes() const override { return false; }
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  const Norm norm;      // of the input of each layer
  const int64_t width;  // P
};

class PerLayerRun : public MixerRun {
 public:
  PerLayerRun(const PerLayerMixers& own, const Stream& stream)
      : own_(own),
        scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(stream.width)))),
        input_(at::empty({stream.rows, stream.width}, at::kFloat)),
        gates_(at::empty({stream.rows, own.width}, at::kFloat)) {
    std::copy_n(stream.x, stream.rows * stream.width, input_.data_ptr<float>());
  }

  void read(std::size_t step, const Stream& part, const float* input, int64_t begin) override {
    const PerLayerStep& own = own_.steps[step];
    const int64_t count = part.rows * own_.width;
    float* const gates = gates_of(begin);
    project(part, own.gate, input, gates, own_.width);
    activate(own.activation, gates, count);
    float* const inputs = platform::scratch(platform::Scratch::Hidden, count);
    own.input.run(input_.const_data_ptr<float>() + begin * part.width, part.width, part.rows,
                  inputs, own_.width, part.regime);
    for (int64_t i = 0; i < count; ++i) inputs[i] *= scale_;
    normalise_heads(inputs, own_.width, part.rows, own_.width, own_.norm);
    for (int64_t i = 0; i < count; ++i) gates[i] *= inputs[i];
  }

  void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
             const Norm& after) override {
    add_projected(part, own_.steps[step].projection, gates_of(begin), own_.width, post, after);
  }

 private:
  float* gates_of(int64_t row) const { return gates_.data_ptr<float>() + row * own_.width; }

  const PerLayerMixers& own_;
  const float scale_;
  const at::Tensor input_, gates_;
};

std::unique_ptr<MixerRun> PerLayerMixers::begin(const BatchRows& batch) const {
  return std::make_unique<PerLayerRun>(*this, batch.stream);
}

}  // namespace

Block freeze_step(const blocks::PerLayerInput& own, StackFreezer& stack) {
  WeightConverter& convert = stack.convert;
  const at::Tensor& all = stack.encoder.per_layer_projection.ptr()->weight;
  const int64_t width = *own.options->per_layer_input();
  return stack.layers.mixers<PerLayerMixers>(Norm(stack.encoder.per_layer_norm), width)
      .add(
          {.gate = linear(*own.gate, convert),
           .projection = linear(*own.projection, convert),
           .input = convert.projection(all.narrow(0, stack.layer_number() * width, width), {}, all),
           .activation = own.options->activation()});
}

}  // namespace posenc::inference
