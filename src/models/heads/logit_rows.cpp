#include "models/heads/logit_rows.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include "models/decoder/parts.h"

namespace posenc {

ModelWithLogits load_with_logits(const char* caller, const std::string& folder,
                                 const std::vector<int64_t>& tokens, const LoadOptions& options) {
  const Decoder decoder = load_decoder_for(caller, folder, options);
  const at::Tensor table = decoder->lm_head->effective_weight().detach();
  for (const int64_t token : tokens)
    TORCH_CHECK_VALUE(0 <= token && token < table.size(0), "[", caller, "] ", folder,
                      ": the tokens of a score must be in the vocabulary of ", table.size(0),
                      ". Got ", token);
  const at::Tensor ids = at::tensor(tokens, at::kLong);
  const at::Tensor& bias = decoder->lm_head->bias;
  return {decoder->model, table.index_select(0, ids),
          bias.defined() ? bias.detach().index_select(0, ids) : at::Tensor(), decoder->options};
}

at::Tensor logits_of_tokens(const ModelWithLogits& model, const at::Tensor& rows) {
  const auto bias = model.bias.defined() ? std::optional(model.bias) : std::nullopt;
  return scaled_logits(*model.options, at::linear(rows, model.rows, bias));
}

}  // namespace posenc
