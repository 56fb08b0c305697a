#include "posenc/inference/freeze.h"

#include <ATen/ops/empty.h>

#include <ostream>

#include "inference/model.h"
#include "nn/transformer/layer_parts.h"

namespace posenc {
namespace {

using inference::Memory;
using inference::Packing;

template <typename Holder>
const auto& module_of(const Holder& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] there must be a model. Got an empty holder");
  return *model.ptr();
}

void check_input(const char* name, const torch::Tensor& x, int64_t width) {
  TORCH_CHECK_TYPE(x.scalar_type() == torch::kFloat, "[", name,
                   "] a frozen model takes float32. Got ", x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width && x.is_cpu(), "[", name,
                    "] a sequence must be (B, L, ", width, ") on the CPU. Got ", x.sizes(), " on ",
                    x.device());
}

void check_ids(const char* name, const torch::Tensor& ids) {
  TORCH_CHECK_VALUE(ids.dim() == 2 && ids.is_cpu(), "[FrozenTransformer] ", name,
                    " must be ids (B, L) on the CPU. Got ", ids.sizes(), " on ", ids.device());
}

}  // namespace

namespace inference {

Memory encode(const TransformerModel& model, const at::Tensor& src, const AttentionMask& src_mask) {
  const int64_t batch = src.size(0), length = src.size(1);
  const Packing packing = Packing::of(src_mask, batch, length);
  at::Tensor rows;
  if (packing.packed) {
    const at::Tensor places = at::tensor(packing.places);
    rows = model.src_embedding.at_positions(packing.pack(src), places.remainder(length), length);
  } else {
    rows = model.src_embedding(src).flatten(0, 1);
  }
  const ScoreMask mask =
      packing.residual_mask(src_mask, {batch, model.encoder.heads, length, length}, rows);
  return {run(model.encoder, rows, packing, mask), packing};
}

}  // namespace inference

torch::Tensor FrozenEncoder::forward(const torch::Tensor& x, const AttentionMask& mask) const {
  const torch::NoGradGuard no_grad;
  const auto& layer = model_->options.layer();
  check_input("FrozenEncoder", x, layer.d_model());
  model_->watch.check();
  const torch::Tensor batch_first = layer.batch_first() ? x : x.transpose(0, 1);
  const int64_t batch = batch_first.size(0), length = batch_first.size(1);
  const Packing packing = Packing::of(mask, batch, length);
  const torch::Tensor rows = packing.packed
                                 ? packing.pack(batch_first)
                                 : batch_first.clone(at::MemoryFormat::Contiguous).flatten(0, 1);
  const ScoreMask rest =
      packing.residual_mask(mask, {batch, layer.num_heads(), length, length}, rows);
  const torch::Tensor out = packing.unpack(inference::run(model_->stack, rows, packing, rest));
  return layer.batch_first() ? out : out.transpose(0, 1);
}

const TransformerEncoderOptions& FrozenEncoder::options() const { return model_->options; }
FrozenBytes FrozenEncoder::bytes() const { return model_->watch.bytes(); }

torch::Tensor FrozenTransformer::encode(const torch::Tensor& src,
                                        const AttentionMask& src_mask) const {
  const torch::NoGradGuard no_grad;
  check_ids("src", src);
  model_->watch.check();
  const Memory memory = inference::encode(*model_, src, src_mask);
  return memory.packing.unpack(memory.rows);
}

torch::Tensor FrozenTransformer::decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                                        const AttentionMask& tgt_mask,
                                        const AttentionMask& memory_mask) const {
  const torch::NoGradGuard no_grad;
  check_ids("tgt", tgt);
  check_input("FrozenTransformer", memory, model_->options.d_model());
  TORCH_CHECK_VALUE(tgt.size(0) == memory.size(0),
                    "[FrozenTransformer] tgt and memory must have one batch. Got ", tgt.sizes(),
                    " and ", memory.sizes());
  model_->watch.check();
  const int64_t batch = tgt.size(0), length = tgt.size(1), heads = model_->decoder.heads;
  const torch::Tensor x = model_->tgt_embedding(tgt).flatten(0, 1);
  const torch::Tensor out = inference::run(
      model_->decoder, x, memory.resolve_neg().contiguous().flatten(0, 1), Packing(batch, length),
      Packing(batch, memory.size(1)), tgt_mask.resolve({batch, heads, length, length}, x),
      memory_mask.resolve({batch, heads, length, memory.size(1)}, x));
  const torch::Tensor logits = at::empty({batch, length, model_->final_layer.out()}, at::kFloat);
  model_->final_layer.run(out.const_data_ptr<float>(), batch * length, logits.data_ptr<float>(),
                          inference::rows_case(batch * length));
  return logits;
}

const TransformerOptions& FrozenTransformer::options() const { return model_->options; }
FrozenBytes FrozenTransformer::bytes() const { return model_->watch.bytes(); }

FrozenEncoder freeze(const TransformerEncoderImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  auto frozen = std::make_shared<inference::EncoderModel>(
      inference::EncoderModel{model.options, inference::StaleCheck(model), {}});
  inference::Multipliers multipliers(options.gemm());
  frozen->stack = inference::freeze_stack(model, multipliers);
  return inference::FrozenAccess::wrap(std::move(frozen));
}

FrozenEncoder freeze(const TransformerEncoder& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

FrozenTransformer freeze(const TransformerImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  inference::Multipliers multipliers(options.gemm());
  auto frozen = std::make_shared<inference::TransformerModel>(
      inference::TransformerModel{model.options, inference::StaleCheck(model), {}, {}, {}, {}, {}});
  frozen->src_embedding = inference::Embedding(model.src_embedding);
  frozen->tgt_embedding = inference::Embedding(model.tgt_embedding);
  frozen->encoder = inference::freeze_stack(*model.encoder, multipliers);
  frozen->decoder = inference::freeze_stack(*model.decoder, multipliers);
  const auto& out = *model.final_layer;
  const auto& weight =
      out.weight.defined() ? out.weight : frozen->tgt_embedding.weight;  // else tied
  frozen->final_layer = {weight, out.bias, multipliers.choose(weight)};
  return inference::FrozenAccess::wrap(std::move(frozen));
}

FrozenTransformer freeze(const Transformer& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

std::ostream& operator<<(std::ostream& stream, const FrozenEncoder& model) {
  const auto& options = model.options();
  stream << "posenc::FrozenEncoder(num_layers=" << options.num_layers() << ", ";
  print(stream, options.layer());
  return stream << ")";
}

std::ostream& operator<<(std::ostream& stream, const FrozenTransformer& model) {
  const auto& options = model.options();
  return stream << "posenc::FrozenTransformer(src_vocab=" << options.src_vocab()
                << ", tgt_vocab=" << options.tgt_vocab() << ", tie=" << name_of(options.tie())
                << ", num_encoder_layers=" << options.num_encoder_layers()
                << ", num_decoder_layers=" << options.num_decoder_layers()
                << ", d_model=" << options.d_model() << ", num_heads=" << options.num_heads()
                << ", d_ff=" << options.d_ff() << ")";
}

}  // namespace posenc
