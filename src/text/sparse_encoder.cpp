// posenc-budget: one class: each way in which its first stages make vectors
#include "posenc/text/sparse_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>

#include "models/functional/sparse_rows.h"
#include "text/sentence/model.h"

namespace posenc {
namespace text {

/// What texts of a task go through beside the modules of TaskModel.
struct SparseTask {
  SentenceStages rest{nullptr};  // the stages after SpladePooling; null: none
  at::Tensor weight;             // of a SparseStaticEmbedding alone
  std::optional<int64_t> k;      // of a SparseAutoEncoder
};

struct SparseModel {
  std::shared_ptr<const SentenceModel> model;
  std::map<sentence::Task, SparseTask> tasks;
};

namespace {

constexpr const char* kSparse = "[SparseEncoder] ";

// The entries of a vector that are not 0, by ascending columns.
struct SparseRow {
  std::vector<int64_t> columns;
  std::vector<float> values;

  void add(int64_t column, float value) {
    if (value == 0.0F) return;
    columns.push_back(column);
    values.push_back(value);
  }
};

// Keeps the `most` entries of the largest absolute values, of equal ones the first; NaN is larger
// than all numbers, as in torch.topk().
void keep_largest(SparseRow& row, int64_t most) {
  if (std::ssize(row.columns) <= most) return;
  const auto size = [&](std::size_t i) {
    const float x = std::abs(row.values[i]);
    return std::isnan(x) ? std::numeric_limits<float>::infinity() : x;
  };
  std::vector<std::size_t> order(row.columns.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(order.begin(), end - 1, order.end(), [&](std::size_t a, std::size_t b) {
    const float x = size(a), y = size(b);
    return x > y || (x == y && a < b);
  });
  std::sort(order.begin(), end);
  SparseRow kept;
  for (auto i = order.begin(); i != end; ++i) kept.add(row.columns[*i], row.values[*i]);
  row = std::move(kept);
}

SparseRow sparse_row(const float* x, int64_t width) {
  SparseRow row;
  for (int64_t i = 0; i < width; ++i) row.add(i, x[i]);
  return row;
}

// The rows of all tokens of a batch, and how many each text has.
struct PackedRows {
  at::Tensor rows;
  std::vector<int64_t> lengths;
};

PackedRows packed_rows(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::Tensor all = hidden.flatten(0, 1);
  if (!mask.defined())
    return {all, std::vector<int64_t>(static_cast<std::size_t>(hidden.size(0)), hidden.size(1))};
  const at::Tensor is_token = mask.ne(0), counts = is_token.sum(1);
  const auto* const count = counts.const_data_ptr<int64_t>();
  return {all.index_select(0, is_token.flatten().nonzero().squeeze(1)),
          {count, count + counts.numel()}};
}

// log(1 + max(z, 0)), in place.
at::Tensor weights_of(at::Tensor logits, int64_t logs) {
  logits.relu_();
  for (int64_t i = 0; i < logs; ++i) logits.log1p_();
  return logits;
}

// SpladePooling of the logits of a head, which are made a part at a time.
at::Tensor splade_vectors(const FrozenClassifier& model, const sentence::SpladePooling& stage,
                          const PackedRows& packed) {
  if (stage.strategy == sentence::SpladeStrategy::Max) {
    at::Tensor largest = model.largest_logits(packed.rows, packed.lengths);
    return weights_of(largest, stage.logs);
  }
  const int64_t width = model.options().head().outputs();
  at::Tensor sums = at::empty({std::ssize(packed.lengths), width}, at::kFloat);
  int64_t first = 0;
  for (int64_t i = 0; i < sums.size(0); ++i) {
    const int64_t length = packed.lengths[static_cast<std::size_t>(i)];
    const at::Tensor logits = model.logits(packed.rows.narrow(0, first, length));
    const torch_internals::CallThreads pooling({}, torch_internals::Operations::Large);
    sums.select(0, i).copy_(weights_of(logits, stage.logs).sum(0));
    first += length;
  }
  return sums;
}

at::Tensor splade_of_batch(const TaskModel& model, const SparseTask& task, const ModelBatch& batch,
                           std::optional<int64_t> max_active_dims) {
  const FrozenClassifier& head = *model.first->classifier;
  const at::Tensor hidden = head.encoder().forward(batch.ids, batch.inputs).last_hidden_state;
  const auto& stage = std::get<sentence::SpladePooling>(model.stages->options.stages().front());
  const at::Tensor vectors = splade_vectors(head, stage, packed_rows(hidden, batch.mask));
  if (!task.rest) return vectors;
  return task.rest.ptr()->forward(vectors, batch.mask, 0, batch.ids, {}, max_active_dims);
}

// The vectors of rows with a head for masked words, in their order.
void add_splade(const TaskModel& model, const SparseTask& task, const TextRows& rows,
                const std::vector<int64_t>& indices, std::optional<int64_t> max_active_dims,
                std::vector<SparseRow>& result) {
  for (const ModelBatch& batch : model_batches(model.rules, rows.batch(), kAllRows)) {
    const at::Tensor vectors = splade_of_batch(model, task, batch, max_active_dims).contiguous();
    for (int64_t i = 0; i < vectors.size(0); ++i) {
      const auto row = static_cast<std::size_t>(batch.rows[static_cast<std::size_t>(i)]);
      result[static_cast<std::size_t>(indices[row])] =
          sparse_row(vectors.const_data_ptr<float>() + i * vectors.size(1), vectors.size(1));
    }
  }
}

// The weights of the tokens of a text, of each once.
SparseRow weights_by_presence(std::vector<int64_t> ids, const at::Tensor& weight) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  TORCH_CHECK_VALUE(ids.empty() || (ids.front() >= 0 && ids.back() < weight.size(0)), kSparse,
                    "the weights must be of each of the tokenizer's tokens. Got ", weight.size(0),
                    " weights and a token ", ids.back());
  SparseRow row;
  for (const int64_t id : ids) row.add(id, weight.const_data_ptr<float>()[id]);
  return row;
}

void add_batch(const TaskModel& model, const SparseTask& task,
               const std::vector<std::string>& texts, const std::vector<int64_t>& indices,
               int64_t prompt, const SparseEncodeOptions& options, std::vector<SparseRow>& result) {
  if (task.weight.defined() && !options.on_truncated()) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      result[static_cast<std::size_t>(indices[i])] = weights_by_presence(
          model.first->tokenizer.encode_ids(texts[i], std::nullopt, model.rules.options),
          task.weight);
    return;
  }
  const TextRows rows(model.first->tokenizer, texts, model.rules.options);
  rows.tell_cut(indices, options.on_truncated());
  if (model.first->classifier)
    return add_splade(model, task, rows, indices, options.max_active_dims(), result);
  const at::Tensor vectors =
      dense_vectors("SparseEncoder", model, rows, indices, prompt, options.max_active_dims())
          .contiguous();
  for (std::size_t i = 0; i < rows.size(); ++i)
    result[static_cast<std::size_t>(indices[i])] =
        sparse_row(vectors.const_data_ptr<float>() + static_cast<int64_t>(i) * vectors.size(1),
                   vectors.size(1));
}

SparseVectors together(const std::vector<SparseRow>& rows, int64_t width) {
  SparseVectors vectors;
  vectors.width = width;
  vectors.crow_indices = at::empty({std::ssize(rows) + 1}, at::kLong);
  auto* const begins = vectors.crow_indices.data_ptr<int64_t>();
  begins[0] = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    begins[i + 1] = begins[i] + std::ssize(rows[i].columns);
  vectors.col_indices = at::empty({begins[rows.size()]}, at::kLong);
  vectors.values = at::empty({begins[rows.size()]}, at::kFloat);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].columns.begin(), rows[i].columns.end(),
              vectors.col_indices.data_ptr<int64_t>() + begins[i]);
    std::copy(rows[i].values.begin(), rows[i].values.end(),
              vectors.values.data_ptr<float>() + begins[i]);
  }
  return vectors;
}

// The stages after the first, which is SpladePooling, as stages of sentences; null if there are
// none. They have the same modules.
SentenceStages stages_after_splade(const SentenceStages& stages) {
  const auto& all = stages->options.stages();
  if (all.size() == 1) return SentenceStages(nullptr);
  SentenceStages rest(SentenceStagesOptions(stages->options.d_model())
                          .takes_sentences(true)
                          .stages({all.begin() + 1, all.end()}));
  for (const auto& item : stages->named_children())
    rest->replace_module(std::to_string(std::stoul(item.key()) - 1), item.value());
  rest->eval();
  return rest;
}

SparseTask sparse_task(const TaskModel& model) {
  SparseTask task;
  const auto& stages = model.stages->options.stages();
  for (const sentence::Stage& stage : stages)
    if (const auto* const coder = std::get_if<sentence::SparseAutoEncoder>(&stage))
      task.k = coder->k;
  if (model.first->classifier) {
    const int64_t width = model.first->classifier->options().head().outputs();
    TORCH_CHECK_VALUE(model.stages->options.d_model() == width,
                      "[load_sparse_encoder] the head must have a logit for each of vocab_size, ",
                      model.stages->options.d_model(), ". Got ", width);
    task.rest = stages_after_splade(model.stages);
  }
  const bool is_presence = stages.size() == 1 && model.stages->options.d_model() == 0;
  if (is_presence) task.weight = model.stages->named_parameters().begin()->value().contiguous();
  return task;
}

}  // namespace
}  // namespace text

SparseVectors SparseEncoder::encode(const std::vector<std::string>& texts,
                                    const SparseEncodeOptions& options) const {
  const auto held = model_;  // keeps it alive: another may be assigned to the handle meanwhile
  const text::SentenceModel& all = *held->model;
  const inference::FrozenCall call(all.call);
  text::check_positive("SparseEncoder", "batch_size", options.batch_size());
  SparseEncodeOptions own = options;
  if (!own.max_active_dims()) own.max_active_dims(all.folder.max_active_dims);
  if (own.max_active_dims())
    text::check_positive("SparseEncoder", "max_active_dims", *own.max_active_dims());
  const text::TaskModel& model = all.of(options.task());
  const text::SparseTask& task = held->tasks.at(options.task());
  const std::string prompt = text::prompt_of("SparseEncoder", options, all.folder);
  const int64_t excluded = text::prompt_length(model, prompt);
  std::vector<text::SparseRow> rows(texts.size());
  text::each_batch(texts, options.batch_size(), prompt,
                   [&](const auto& indices, const auto& batch) {
                     text::add_batch(model, task, batch, indices, excluded, own, rows);
                   });
  if (const auto most = own.max_active_dims() ? own.max_active_dims() : task.k)
    for (text::SparseRow& row : rows) text::keep_largest(row, *most);
  return text::together(rows, all.width());
}

SparseVectors SparseEncoder::encode_query(const std::vector<std::string>& texts,
                                          SparseEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Query));
}

SparseVectors SparseEncoder::encode_document(const std::vector<std::string>& texts,
                                             SparseEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Document));
}

std::vector<std::vector<TokenWeight>> SparseEncoder::decode(const SparseVectors& vectors,
                                                            std::optional<int64_t> top_k) const {
  TORCH_CHECK_VALUE(vectors.width == width(), text::kSparse, "vectors must have the width ",
                    width(), ". Got ", vectors.width);
  if (top_k) text::check_positive("SparseEncoder", "top_k", *top_k);
  const Tokenizer& words = model_->model->tasks.begin()->second.first->tokenizer;
  const SparseRows rows("SparseEncoder", vectors);
  std::vector<std::vector<TokenWeight>> all;
  for (int64_t i = 0; i < rows.count(); ++i) {
    std::vector<int64_t> order(static_cast<std::size_t>(rows.end(i) - rows.begin(i)));
    std::iota(order.begin(), order.end(), rows.begin(i));
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return rows.value(a) > rows.value(b); });
    if (top_k && *top_k < std::ssize(order)) order.resize(static_cast<std::size_t>(*top_k));
    std::vector<TokenWeight>& own = all.emplace_back();
    for (const int64_t entry : order)
      own.push_back({words.id_to_token(rows.column(entry)), rows.value(entry)});
  }
  return all;
}

int64_t SparseEncoder::width() const { return model_->model->width(); }
std::optional<int64_t> SparseEncoder::max_seq_length(sentence::Task task) const {
  return model_->model->of(task).max_length;
}
const SentenceFolder& SparseEncoder::folder() const { return model_->model->folder; }
const Tokenizer& SparseEncoder::tokenizer(sentence::Task task) const {
  return model_->model->of(task).first->tokenizer;
}

SparseEncoder load_sparse_encoder(const std::string& folder, const FreezeOptions& options,
                                  const LoadOptions& load) {
  auto model = std::make_shared<text::SparseModel>();
  model->model = text::load_sentence_model(
      "load_sparse_encoder", read_sentence_folder(folder, SentenceKind::Sparse, load.base()),
      options, load);
  for (const auto& [task, own] : model->model->tasks)
    model->tasks.emplace(task, text::sparse_task(own));
  return SparseEncoder(std::move(model));
}

std::ostream& operator<<(std::ostream& stream, const SparseEncoder& model) {
  return stream << "posenc::SparseEncoder(width=" << model.width()
                << ", routes=" << model.folder().routes.size() << ")";
}

}  // namespace posenc
