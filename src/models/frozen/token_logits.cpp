// The logits of a few tokens after texts, of which some begin alike.

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

#include "models/decoder/parts.h"
#include "models/frozen/decoder_parts.h"
#include "models/frozen/frozen_folder.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

using Ids = std::vector<int64_t>;
using inference::FrozenDecoderAccess;

// A call by itself reads all weights once more, which takes the time of about this many tokens.
constexpr int64_t kLeastSaved = 32;

// Leaves an output layer of these rows of the model's own.
void keep_outputs(DecoderImpl& model, const std::vector<int64_t>& tokens) {
  const torch::NoGradGuard no_grad;
  const SkipInit skip;
  const at::Tensor ids = at::tensor(tokens, at::kLong), &whole = model.lm_head->effective_weight(),
                   &bias = model.lm_head->bias;
  OutputProjection some(whole.size(1), std::ssize(tokens), bias.defined());
  some->weight.copy_(whole.index_select(0, ids));
  if (bias.defined()) some->bias.copy_(bias.index_select(0, ids));
  some->eval();
  model.lm_head =
      std::dynamic_pointer_cast<OutputProjectionImpl>(model.replace_module("lm_head", some.ptr()));
  model.options.tied(false);
}

// What the texts of a group begin with, if it saves time to compute it once; or else null.
std::shared_ptr<const inference::PromptCacheParts> common_beginning(const FrozenDecoder& model,
                                                                    const std::vector<Ids>& texts,
                                                                    const Ids& group) {
  const Ids& first = texts[static_cast<std::size_t>(group.front())];
  auto end = first.end();
  for (const int64_t i : group) {
    const Ids& own = texts[static_cast<std::size_t>(i)];
    end = std::mismatch(first.begin(), end, own.begin(), own.end()).first;
  }
  if ((end - first.begin()) * (std::ssize(group) - 1) < kLeastSaved) return nullptr;
  return FrozenDecoderAccess::parts(PromptCache(model, {first.begin(), end}));
}

}  // namespace

at::Tensor FrozenTokenLogits::after(const std::vector<Ids>& texts, const std::vector<Ids>& groups,
                                    int64_t most) const {
  const auto parts = FrozenDecoderAccess::parts(model);
  parts->check_unchanged();
  at::Tensor all = at::empty({std::ssize(texts), std::ssize(columns)}, at::kFloat);
  std::vector<inference::CachedText> batch;
  Ids indices;
  const auto flush = [&] {
    if (batch.empty()) return;
    const at::Tensor logits = parts->logits_in(inference::last_rows(*parts, batch), columns);
    all.index_copy_(0, at::tensor(indices, at::kLong), logits);
    batch.clear();
    indices.clear();
  };
  for (const Ids& group : groups) {
    const auto beginning = common_beginning(model, texts, group);
    for (const int64_t i : group) {
      batch.push_back({texts[static_cast<std::size_t>(i)], beginning});
      indices.push_back(i);
      if (std::ssize(batch) == most) flush();
    }
  }
  flush();
  return all;
}

FrozenTokenLogits load_token_logits(const char* caller, const std::string& folder,
                                    const std::vector<int64_t>& tokens,
                                    const FreezeOptions& options, const LoadOptions& load) {
  const auto check = [&](const DecoderOptions& of) {
    const int64_t vocab = of.model().embeddings()->vocab_size();
    for (const int64_t token : tokens)
      TORCH_CHECK_VALUE(0 <= token && token < vocab, "[", caller, "] ", folder,
                        ": the tokens of a score must be in the vocabulary of ", vocab, ". Got ",
                        token);
  };
  if (is_frozen_folder(folder)) {
    FrozenDecoder model = load_and_freeze_decoder(folder, options, load);
    check(model.options());
    return {std::move(model), tokens};
  }
  Decoder model = load_decoder_for(caller, folder, load);
  check(model->options);
  keep_outputs(*model, tokens);
  FreezeOptions own = options;
  std::vector<std::string> exceptions = own.weights_to_not_convert();
  exceptions.emplace_back("lm_head.weight");
  std::vector<int64_t> columns(tokens.size());
  std::iota(columns.begin(), columns.end(), 0);
  return {freeze(std::move(model), own.weights_to_not_convert(std::move(exceptions))),
          std::move(columns)};
}

}  // namespace posenc
