// Convolutions over the rows of sequences: a conformer's, and DeBERTa's beside its first layer.

#include <ATen/ops/empty.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "inference/layers/mixers.h"
#include "inference/rows/activation_rows.h"

namespace posenc::inference {
namespace {

// A ConformerConvolution, whose batch norm is part of its depthwise convolution; the norm of its
// input is the block's before.
struct ConformerConvolutionStep {
  Projection pointwise1, pointwise2;
  at::Tensor depthwise, bias;  // (K, D), (D)
  Activation activation;       // after them

  RowFormat row_format() const { return pointwise1.row_format(); }
};
class ConformerConvolutionMixers : public StepMixers<ConformerConvolutionStep> {
 public:
  bool takes_parts() const override { return true; }
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;
};

class ConformerConvolutionRun : public MixerRun {
 public:
  ConformerConvolutionRun(const ConformerConvolutionMixers& own, const BatchRows& batch)
      : own_(own),
        packing_(batch.packing),
        width_(batch.stream.width),
        gated_(at::empty({batch.stream.rows, odd_stride(2 * width_)}, at::kFloat)),
        convolved_(at::empty({batch.stream.rows, width_}, at::kFloat)) {}

  // What the convolution sees: a sigmoid(b).
  void read(std::size_t step, const Stream& part, const float* input, int64_t begin) override {
    const int64_t width = width_, stride = gated_.size(1);
    float* const gated = gated_.data_ptr<float>() + begin * stride;
    project(part, own_.steps[step].pointwise1, input, gated, stride);
    split_rows(part.rows, 2 * width, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        float* const a = gated + row * stride;
        for (int64_t c = 0; c < width; ++c) a[c] /= 1.0F + std::exp(-a[width + c]);
      }
    });
  }

  void mix(std::size_t step, const float*, const SequenceRange& sequences) override {
    const ConformerConvolutionStep& own = own_.steps[step];
    by_rows(sequences, [&](int64_t begin, int64_t end) {
      split_rows(end - begin, width_ * own.depthwise.size(0), [&](int64_t first, int64_t last) {
        for (int64_t row = begin + first; row < begin + last; ++row) convolve(own, row);
      });
    });
  }

  void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
             const Norm& after) override {
    add_projected(part, own_.steps[step].pointwise2,
                  convolved_.const_data_ptr<float>() + begin * width_, width_, post, after);
  }

 private:
  void convolve(const ConformerConvolutionStep& own, int64_t row) const {
    const int64_t width = width_, stride = gated_.size(1), length = packing_.length;
    const int64_t size = own.depthwise.size(0), reach = size / 2, token = row % length;
    const float* const gated = gated_.const_data_ptr<float>();
    float* const sum = convolved_.data_ptr<float>() + row * width;
    std::copy_n(own.bias.const_data_ptr<float>(), width, sum);
    const int64_t from = std::max<int64_t>(0, reach - token);
    const int64_t to = std::min(size, length - token + reach);
    for (int64_t k = from; k < to; ++k) {
      const float* const x = gated + (row + k - reach) * stride;
      const float* const w = own.depthwise.const_data_ptr<float>() + k * width;
      for (int64_t c = 0; c < width; ++c) sum[c] += x[c] * w[c];
    }
    activate(own.activation, sum, width);
  }

  const ConformerConvolutionMixers& own_;
  const Packing& packing_;
  const int64_t width_;
  const at::Tensor gated_, convolved_;
};

// A ConvolutionBeside, which reads the input of the layers and adds to the output of the first.
class ConvolutionBesideMixers : public Mixers {
 public:
  bool mixes() const override { return false; }
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  Projection projection;  // (D, K D), of K neighbouring rows side by side
  int64_t size = 0;       // K
  Activation activation = Activation::ReLU;
};

// For each row, the rows of its K neighbours side by side: -1 beyond the ends and for padding,
// whether it is dropped or not.
std::vector<int64_t> neighbours(const Packing& packing, int64_t size) {
  const int64_t slots = packing.batch * packing.length, reach = size / 2;
  std::vector<int64_t> row_at(static_cast<std::size_t>(slots), -1), found;
  const auto position = [&](int64_t row) {
    return packing.packed ? packing.positions[static_cast<std::size_t>(row)] : row;
  };
  for (int64_t row = 0; row < packing.rows; ++row) {
    if (!packing.is_padding(row)) row_at[static_cast<std::size_t>(position(row))] = row;
  }
  found.reserve(static_cast<std::size_t>(packing.rows * size));
  for (int64_t row = 0; row < packing.rows; ++row) {
    const int64_t own = position(row), begin = own / packing.length * packing.length;
    for (int64_t other = own - reach; other <= own + reach; ++other) {
      const bool inside = other >= begin && other < begin + packing.length;
      found.push_back(inside ? row_at[static_cast<std::size_t>(other)] : -1);
    }
  }
  return found;
}

class ConvolutionBesideRun : public MixerRun {
 public:
  // Its input is that of the first layer.
  ConvolutionBesideRun(const ConvolutionBesideMixers& own, const BatchRows& batch)
      : own_(own),
        packing_(batch.packing),
        neighbours_(at::empty({batch.stream.rows, own.size * batch.stream.width}, at::kFloat)) {
    const int64_t width = batch.stream.width;
    float* to = neighbours_.data_ptr<float>();
    for (const int64_t row : neighbours(packing_, own.size)) {
      if (row < 0) {
        std::fill_n(to, width, 0.0F);
      } else {
        std::copy_n(batch.stream.x + row * width, width, to);
      }
      to += width;
    }
  }

  // Rows of padding, where they are not dropped, are zeros after it.
  void write(std::size_t, const Stream& part, int64_t begin, const Norm&,
             const Norm& after) override {
    const at::Tensor added = at::empty({part.rows, part.width}, at::kFloat);
    // By the kernels of many rows, also in 8 bits' models, where a row's bits are those that it has
    // alone: this weight stays in float32.
    own_.projection.run(neighbours_.const_data_ptr<float>() + begin * neighbours_.size(1),
                        part.rows, added.data_ptr<float>(), RowRegime::Many);
    activate_by_row(added, own_.activation);
    add(part, added.const_data_ptr<float>(), after);
    for (int64_t row = 0; row < part.rows; ++row) {
      if (!packing_.is_padding(begin + row)) continue;
      std::fill_n(part.x + row * part.width, part.width, 0.0F);
      if (part.input_converted) part.input_converted.convert(part.x, part.width, row, row + 1);
    }
  }

 private:
  const ConvolutionBesideMixers& own_;
  const Packing& packing_;
  const at::Tensor neighbours_;
};

std::unique_ptr<MixerRun> ConformerConvolutionMixers::begin(const BatchRows& batch) const {
  return std::make_unique<ConformerConvolutionRun>(*this, batch);
}

std::unique_ptr<MixerRun> ConvolutionBesideMixers::begin(const BatchRows& batch) const {
  return std::make_unique<ConvolutionBesideRun>(*this, batch);
}

}  // namespace

Block freeze_step(const ConformerConvolutionImpl& own, StackFreezer& stack) {
  TORCH_INTERNAL_ASSERT(stack.block().before == nullptr, "a norm before a convolution's own");
  WeightConverter& convert = stack.convert;
  const torch::nn::BatchNorm1dImpl& norm = *own.batch_norm;
  const at::Tensor factors = convert.computed(norm.weight, "factors", norm.weight.sizes(), [&] {
    return norm.weight.detach() * at::rsqrt(norm.running_var.detach() + norm.options.eps());
  });
  convert.derived(own.depthwise_weight, static_cast<int64_t>(own.depthwise_weight.nbytes()));
  convert.derived(norm.bias, static_cast<int64_t>(norm.bias.nbytes()));
  for (const at::Tensor& source : {norm.weight, norm.running_mean, norm.running_var})
    convert.derived(source, 0);
  stack.layers.sees_padding = true;
  Block block = stack.layers.mixers<ConformerConvolutionMixers>().add(
      {.pointwise1 = linear(*own.pointwise1, convert),
       .pointwise2 = linear(*own.pointwise2, convert),
       .depthwise = (own.depthwise_weight.detach() * factors.unsqueeze(1)).t().contiguous(),
       .bias = norm.bias.detach() - norm.running_mean.detach() * factors,
       .activation = own.options.activation()});
  block.after = Norm(own.norm);
  return block;
}

Block freeze_beside(const ConvolutionBesideImpl& own, StackFreezer& stack) {
  auto& all = stack.layers.mixers<ConvolutionBesideMixers>();
  const DisentangledOptions& options = *own.options.disentangled();
  all.projection = convolution(*own.conv, stack.convert);
  all.size = options.conv_kernel_size();
  all.activation = options.conv_act();
  return {.mixers = &all, .after = Norm(own.norm)};
}

}  // namespace posenc::inference
