#include "cli/text_model.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace posenc::cli {

TextModel::TextModel(const std::string& folder, std::optional<head::Kind> kind)
    : folder_(read_cross_encoder_folder(folder)),
      model_(freeze(load_classifier(folder_.model, kind))),
      tokenizer_(Tokenizer::from_folder(folder_.model, folder_.do_lower_case)),
      pad_(tokenizer_.special_token_id("pad_token")),
      most_tokens_(max_tokens_of_text(folder_.max_seq_length, tokenizer_.model_max_length(),
                                      folder_.max_positions)) {}

Encoding TextModel::tokens(const TextInput& input) const {
  auto wanted = TokenizerOptions().offsets(true);
  if (most_tokens_) {
    wanted.truncation(tokenizer::Truncation::LongestFirst).max_length(*most_tokens_);
  }
  std::optional<std::string_view> second;
  if (input.is_pair) second = input.second;
  return tokenizer_.encode_one(input.text, second, wanted).front();
}

std::pair<torch::Tensor, EncoderInputs> TextModel::batch(const std::vector<Encoding>& texts) const {
  std::size_t longest = 1;
  for (const Encoding& text : texts) longest = std::max(longest, text.ids.size());
  const auto rows = static_cast<int64_t>(texts.size());
  const auto length = static_cast<int64_t>(longest);
  torch::Tensor ids = torch::full({rows, length}, pad_.value_or(0), torch::kLong);
  torch::Tensor mask = torch::zeros({rows, length}, torch::kLong), types = mask.clone();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto place = static_cast<int64_t>(i * longest);
    const auto count = static_cast<int64_t>(texts[i].ids.size());
    std::copy_n(texts[i].ids.begin(), count, ids.data_ptr<int64_t>() + place);
    std::copy_n(texts[i].type_ids.begin(), count, types.data_ptr<int64_t>() + place);
    std::fill_n(mask.data_ptr<int64_t>() + place, count, 1);
  }
  auto inputs = EncoderInputs().attention_mask(mask);
  if (model_.options().encoder().embeddings()->type_vocab_size() > 1) {
    inputs.token_type_ids(types);
  }
  return {ids, inputs};
}

}  // namespace posenc::cli
