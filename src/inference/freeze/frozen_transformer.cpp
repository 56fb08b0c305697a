#include <ATen/ops/empty.h>

#include <ostream>

#include "core/print_fields.h"
#include "inference/freeze/checks.h"
#include "inference/freeze/model.h"
#include "inference/rows/frozen_scope.h"
#include "posenc/inference/freeze.h"
#include "positions/nn/audio_embeddings_internals.h"

namespace posenc {
namespace {

using inference::Memory;
using inference::Packing;
using torch_internals::CallThreads;

void check_ids(const char* name, const torch::Tensor& ids) {
  TORCH_CHECK_VALUE(ids.defined(), "[FrozenTransformer] ", name,
                    " must be ids (B, L). Got an undefined tensor");
  TORCH_CHECK_VALUE(ids.dim() == 2 && ids.is_cpu(), "[FrozenTransformer] ", name,
                    " must be ids (B, L) on the CPU. Got ", ids.sizes(), " on ", ids.device());
}

}  // namespace

namespace inference {

void check_source(const TransformerModel& model, const at::Tensor& src) {
  if (!model.src_features) return check_ids("src", src);
  check_features("FrozenTransformer", src, *model.options.src_features());
  TORCH_CHECK_VALUE(src.is_cpu(), "[FrozenTransformer] features must be on the CPU. Got ",
                    src.device());
}

Memory encode(const TransformerModel& model, const at::Tensor& src, const AttentionMask& src_mask) {
  const auto& features = model.src_features;
  const int64_t batch = src.size(0), length = features ? features->positions() : src.size(1);
  const Packing packing = model.encoder->packing_of(src_mask, batch, length);
  at::Tensor rows = features ? features->rows(src) : model.src_embedding.packed(src, packing);
  if (features && packing.packed) rows = packing.pack(rows.unflatten(0, {batch, length}));
  const ScoreMask mask = model.encoder->mask_of(packing, src_mask, rows);
  return {model.encoder->run(rows, packing, mask), packing};
}

at::Tensor decode_rows(const TransformerModel& model, const at::Tensor& tgt,
                       const at::Tensor& memory, const AttentionMask& tgt_mask,
                       const AttentionMask& memory_mask, at::Tensor* memory_weights,
                       const std::vector<int64_t>& tgt_tokens) {
  const int64_t batch = tgt.size(0), length = tgt.size(1), heads = model.decoder.heads;
  const at::Tensor x = model.tgt_embedding(tgt).flatten(0, 1);
  // Padding is computed, as in the module.
  Packing packing = Packing::whole(tgt_mask, batch, length);
  if (!tgt_tokens.empty()) packing.token_counts = tgt_tokens;
  return run(model.decoder, x, memory.resolve_neg().contiguous().flatten(0, 1), packing,
             Packing::whole(memory_mask, batch, memory.size(1)),
             mask_by_distance(with_token_distances(tgt_mask, model.decoder.alibi),
                              {batch, heads, length, length}, x),
             mask_by_distance(memory_mask, {batch, heads, length, memory.size(1)}, x),
             memory_weights);
}

at::Tensor decode(const TransformerModel& model, const at::Tensor& tgt, const at::Tensor& memory,
                  const AttentionMask& tgt_mask, const AttentionMask& memory_mask,
                  at::Tensor* memory_weights, const std::vector<int64_t>& tgt_tokens) {
  const inference::FrozenScope scope;
  check_ids("tgt", tgt);
  check_sequence("FrozenTransformer", memory, model.options.d_model());
  TORCH_CHECK_VALUE(tgt.size(0) == memory.size(0),
                    "[FrozenTransformer] tgt and memory must have one batch. Got ", tgt.sizes(),
                    " and ", memory.sizes());
  model.stale_check.check();
  const CallThreads threads(model.call);
  const int64_t batch = tgt.size(0), length = tgt.size(1);
  const at::Tensor out =
      decode_rows(model, tgt, memory, tgt_mask, memory_mask, memory_weights, tgt_tokens);
  const at::Tensor logits = at::empty({batch, length, model.final_layer.out()}, at::kFloat);
  model.final_layer.run(out.const_data_ptr<float>(), batch * length, logits.data_ptr<float>(),
                        row_regime(batch * length));
  return logits;
}

}  // namespace inference

torch::Tensor FrozenTransformer::encode(const torch::Tensor& src,
                                        const AttentionMask& src_mask) const {
  const inference::FrozenScope scope;
  const auto model = inference::FrozenAccess::model(*this);
  inference::check_source(*model, src);
  model->stale_check.check();
  const CallThreads threads(model->call);
  const Memory memory = inference::encode(*model, src, src_mask);
  return memory.packing.unpack(memory.rows);
}

torch::Tensor FrozenTransformer::decode(const torch::Tensor& tgt, const torch::Tensor& memory,
                                        const AttentionMask& tgt_mask,
                                        const AttentionMask& memory_mask) const {
  const auto model = inference::FrozenAccess::model(*this);
  return inference::decode(*model, tgt, memory, tgt_mask, memory_mask);
}

const TransformerOptions& FrozenTransformer::options() const {
  return referred("FrozenTransformer", model_)->options;
}
FrozenBytes FrozenTransformer::bytes() const {
  return inference::FrozenAccess::model(*this)->stale_check.bytes();
}

std::ostream& operator<<(std::ostream& stream, const FrozenTransformer& model) {
  const TransformerOptions defaults(-1, -1);
  stream << "posenc::FrozenTransformer(";
  fields::print_fields(stream, model.options(), defaults);
  return stream << inference::FrozenAccess::model(model)->weights << ")";
}

}  // namespace posenc
