#include "posenc/text/sentence_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "inference/rows/frozen_call.h"
#include "posenc/models/functional/pooling.h"
#include "text/sentence/model.h"

namespace posenc {
namespace text {

namespace {

at::Tensor encode_texts(const TaskModel& model, const std::vector<std::string>& texts,
                        const std::vector<int64_t>& order, int64_t prompt,
                        const std::function<void(int64_t)>& on_truncated) {
  const TextRows rows(model.first->tokenizer, texts, model.rules.options);
  rows.tell_cut(order, on_truncated);
  return dense_vectors("SentenceEncoder", model, rows, order, prompt);
}

at::Tensor encode_all(const TaskModel& model, const std::vector<std::string>& texts,
                      const std::string& prompt, const SentenceEncodeOptions& options) {
  const int64_t excluded = prompt_length(model, prompt);
  if (texts.size() == 1 && prompt.empty())
    return encode_texts(model, texts, {0}, excluded, options.on_truncated());
  at::Tensor result =
      at::empty({static_cast<int64_t>(texts.size()), model.stages->width()}, at::kFloat);
  each_batch(texts, options.batch_size(), prompt, [&](const auto& indices, const auto& batch) {
    const at::Tensor own = encode_texts(model, batch, indices, excluded, options.on_truncated());
    result.index_copy_(0, at::tensor(indices, at::kLong), own);
  });
  return result;
}

}  // namespace
}  // namespace text

torch::Tensor SentenceEncoder::encode(const std::vector<std::string>& texts,
                                      const SentenceEncodeOptions& options) const {
  const auto held = model_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenCall call(held->call);
  text::check_positive("SentenceEncoder", "batch_size", options.batch_size());
  const auto kept = options.truncate_dim() ? options.truncate_dim() : held->folder.truncate_dim;
  if (kept) text::check_positive("SentenceEncoder", "truncate_dim", *kept);
  const std::string prompt = text::prompt_of("SentenceEncoder", options, held->folder);
  at::Tensor vectors = text::encode_all(held->of(options.task()), texts, prompt, options);
  if (kept && *kept < vectors.size(1)) vectors = vectors.narrow(1, 0, *kept).contiguous();
  return options.normalize() ? functional::l2_normalize(vectors) : vectors;
}

torch::Tensor SentenceEncoder::encode_query(const std::vector<std::string>& texts,
                                            SentenceEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Query));
}

torch::Tensor SentenceEncoder::encode_document(const std::vector<std::string>& texts,
                                               SentenceEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Document));
}

torch::Tensor SentenceEncoder::forward(const torch::Tensor& ids, const EncoderInputs& inputs,
                                       int64_t prompt_length, sentence::Task task) const {
  const auto held = model_;
  const inference::FrozenCall call(held->call);
  const text::TaskModel& model = held->of(task);
  TORCH_CHECK_VALUE(model.first->encoder,
                    "[SentenceEncoder] forward() must be called for a model with an encoder. Got a "
                    "static embedding");
  return text::vectors_of_ids(model, ids, inputs, inputs.attention_mask(), prompt_length, {});
}

int64_t SentenceEncoder::width() const { return model_->width(); }
std::optional<int64_t> SentenceEncoder::max_seq_length(sentence::Task task) const {
  return model_->of(task).max_length;
}
const SentenceFolder& SentenceEncoder::folder() const { return model_->folder; }
const Tokenizer& SentenceEncoder::tokenizer(sentence::Task task) const {
  return model_->of(task).first->tokenizer;
}

SentenceEncoder load_sentence_encoder(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load) {
  return SentenceEncoder(text::load_sentence_model(
      "load_sentence_encoder", read_sentence_folder(folder, SentenceKind::Dense, load.base()),
      options, load));
}

std::ostream& operator<<(std::ostream& stream, const SentenceEncoder& model) {
  return stream << "posenc::SentenceEncoder(width=" << model.width()
                << ", routes=" << model.folder().routes.size() << ")";
}

}  // namespace posenc
