// Vectors by the stages of a model as modules.

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "text/sentence/model.h"

namespace posenc::text {
namespace {

constexpr int64_t kMeanBags = 1;  // at::embedding_bag's mode

void check_tokens(const char* caller, const TaskModel& model, const TextRows& rows,
                  const std::vector<int64_t>& indices) {
  if (model.stages->defines_empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TORCH_CHECK_VALUE(!rows.row(i).is_empty(), "[", caller,
                      "] a text must have a token: cls and max pooling have no vector for none. "
                      "Got an empty text at index ",
                      indices[i]);
  }
}

// The mean of the rows of each text's tokens, without special ones; zeros for a text without
// tokens.
at::Tensor static_vectors(const TaskModel& model, const TextRows& rows,
                          std::optional<int64_t> max_active_dims) {
  std::vector<int64_t> ids, offsets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TextRows::Row row = rows.row(i);
    offsets.push_back(static_cast<int64_t>(ids.size()));
    const auto begin = row.tokens.ids.begin();
    ids.insert(ids.end(), begin + static_cast<std::ptrdiff_t>(row.begin),
               begin + static_cast<std::ptrdiff_t>(row.end));
  }
  const torch_internals::CallThreads threads({}, torch_internals::Operations::Large);
  const auto bags = at::embedding_bag(model.first->table, at::tensor(ids, at::kLong),
                                      at::tensor(offsets, at::kLong),
                                      /*scale_grad_by_freq=*/false, kMeanBags);
  return model.stages.ptr()->forward(std::get<0>(bags), {}, 0, {}, {}, max_active_dims);
}

}  // namespace

at::Tensor vectors_of_ids(const TaskModel& model, const at::Tensor& ids, const EncoderInputs& given,
                          const at::Tensor& mask, int64_t prompt_length,
                          std::optional<int64_t> max_active_dims) {
  auto& stages = *model.stages.ptr();
  if (!model.first->encoder) return stages.forward({}, mask, 0, ids, {}, max_active_dims);
  EncoderInputs inputs = given;
  if (stages.needs_hidden_states()) inputs.output_hidden_states(true);
  const EncoderOutput out = model.first->encoder->forward(ids, inputs);
  return stages.forward(out.last_hidden_state, mask, prompt_length, ids, out.hidden_states,
                        max_active_dims);
}

at::Tensor dense_vectors(const char* caller, const TaskModel& model, const TextRows& rows,
                         const std::vector<int64_t>& indices, int64_t prompt_length,
                         std::optional<int64_t> max_active_dims) {
  if (model.first->table.defined()) return static_vectors(model, rows, max_active_dims);
  check_tokens(caller, model, rows, indices);
  at::Tensor vectors;
  for (const ModelBatch& batch : model_batches(model.rules, rows.batch(), kAllRows)) {
    const at::Tensor own =
        vectors_of_ids(model, batch.ids, batch.inputs, batch.mask, prompt_length, max_active_dims);
    if (batch.rows.size() == rows.size()) return own;
    if (!vectors.defined())
      vectors = at::empty({static_cast<int64_t>(rows.size()), own.size(1)}, at::kFloat);
    vectors.index_copy_(0, at::tensor(batch.rows, at::kLong), own);
  }
  return vectors;
}

}  // namespace posenc::text
