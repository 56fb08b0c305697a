#include "models/heads/logit_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include "models/encoder/folder.h"

namespace posenc {
namespace {

constexpr const char* kHead = "lm_head.weight";

at::Tensor table_of_logits(const EncoderFolder& open, const Encoder& encoder) {
  const std::string name = open.options.prefix() + kHead;
  const at::Tensor& tokens = encoder->embeddings->tokens->weight;
  const at::Tensor own = tensor_in(open.source, name);
  if (!own.defined()) {
    if (!open.config.settings.flag("tie_word_embeddings", true))
      throw missing_tensor(open.source, name);
    return tokens;
  }
  if (own.dim() != 2 || own.size(1) != tokens.size(1))
    throw WeightsError(WeightsErrorCode::ShapeMismatch,
                       "must be (V, " + std::to_string(tokens.size(1)) + ")")
        .in_tensor(name);
  open.leftovers.add_read(name, "logits");
  return own;
}

at::Tensor rows_of(const EncoderFolder& open, const at::Tensor& table,
                   const std::vector<int64_t>& tokens) {
  for (const int64_t token : tokens)
    TORCH_CHECK_VALUE(0 <= token && token < table.size(0), "[", open.caller, "] ", open.folder,
                      ": the tokens of a score must be in the vocabulary of ", table.size(0),
                      ". Got ", token);
  const at::Tensor rows = table.detach().index_select(0, at::tensor(tokens, at::kLong));
  if (!rows.isfinite().all().item<bool>())
    throw WeightsError(WeightsErrorCode::Corrupt, "must have finite rows for the tokens of a score")
        .in_tensor(open.options.prefix() + kHead);
  return rows;
}

}  // namespace

ModelWithLogits load_with_logits(const char* caller, const std::string& folder,
                                 const std::vector<int64_t>& tokens, const LoadOptions& options) {
  ModelWithLogits model = {Encoder(nullptr), {}, {}};
  read_encoder_folder(caller, folder, options, [&](EncoderFolder& open) {
    TORCH_CHECK_VALUE(open.config.options.causal(), "[", caller, "] ", folder,
                      ": must be a causal language model. Got model_type ", open.config.model.type,
                      " with attention in both directions");
    model.encoder = encoder_with_its_pooler(open);
    model.rows = rows_of(open, table_of_logits(open, model.encoder), tokens);
    const Settings& config = open.config.settings;
    constexpr const char* kSoftcap = "final_logit_softcapping";
    if (!config.has(kSoftcap)) return;
    model.softcap = config.real(kSoftcap);
    if (!(*model.softcap > 0)) config.refuse(kSoftcap, "must be positive");
  });
  return model;
}

at::Tensor logits_of_tokens(const ModelWithLogits& model, const at::Tensor& rows) {
  const at::Tensor logits = rows.mm(model.rows.t());
  return model.softcap ? at::tanh(logits / *model.softcap) * *model.softcap : logits;
}

}  // namespace posenc
