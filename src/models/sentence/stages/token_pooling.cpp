#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "models/sentence/stages/token_rows.h"
#include "posenc/models/functional/pooling.h"

namespace posenc {
namespace stages {
namespace {

using sentence::TokenPooling;

// A file without the setting is older than it.
sentence::Stage read_pooling(const Settings& config) {
  TokenPooling pooling;
  pooling.factor = config.real("pool_factor", pooling.factor);
  if (!(pooling.factor >= 1.0)) config.refuse("pool_factor", "must be at least 1");
  pooling.protected_tokens =
      config.integer("num_protected_tokens", pooling.protected_tokens, 0, kWidest);
  pooling.normalize = config.flag("normalize_embeddings", false);
  pooling.tasks = tasks_in(config, "tasks");
  return pooling;
}

void follow_pooling(const sentence::Stage&, const StagePlace& place, StageWidths& widths) {
  widths.check_there(sentence::Feature::Tokens, place);
  widths.are_rows = true;
}

void run_pooling(const sentence::Stage& any, const StageRun& run) {
  StageFeatures& features = run.features;
  if (!features.lengths.defined()) take_rows(features, features.mask);
  const MultiVectors pooled = pool_tokens(std::get<TokenPooling>(any), run.inputs.task,
                                          {features.tokens, features.lengths});
  features.tokens = pooled.embeddings;
  features.lengths = pooled.lengths;
}

}  // namespace

const StageKind kTokenPooling = {.name = "HierarchicalTokenPooling",
                                 .read = read_pooling,
                                 .follow = follow_pooling,
                                 .run = run_pooling,
                                 .takes_rows = true};

void take_rows(StageFeatures& features, const at::Tensor& mask) {
  const at::Tensor& tokens = features.tokens;
  const int64_t batch = tokens.size(0), length = tokens.size(1);
  if (mask.defined()) {
    const at::Tensor kept = mask.ne(0);
    features.lengths = kept.sum(1);
    features.tokens = tokens.index({kept});
  } else {
    features.lengths = at::full({batch}, length, at::kLong);
    features.tokens = tokens.flatten(0, 1);
  }
}

std::vector<sentence::Task> tasks_in(const Settings& config, const char* name) {
  using sentence::Task;
  if (!config.has(name)) return {Task::Document};
  const nlohmann::json& given = config.value(name);
  std::vector<Task> tasks;
  for (const nlohmann::json& task : given.is_array() ? given : nlohmann::json::array({given})) {
    if (task != "query" && task != "document")
      config.refuse(name, "must be query, document or a list of them", task);
    tasks.push_back(task == "query" ? Task::Query : Task::Document);
  }
  return tasks;
}

}  // namespace stages

bool applies_to(const std::vector<sentence::Task>& tasks, sentence::Task task) {
  const auto own = task == sentence::Task::None ? sentence::Task::Document : task;
  return std::find(tasks.begin(), tasks.end(), own) != tasks.end();
}

MultiVectors pool_tokens(const sentence::TokenPooling& pooling, sentence::Task task,
                         const MultiVectors& vectors) {
  if (!applies_to(pooling.tasks, task)) return vectors;
  MultiVectors pooled = vectors;
  if (pooling.factor > 1.0 && vectors.embeddings.size(0) > 0) {
    const at::Tensor counts = vectors.lengths.contiguous();
    const auto* const count = counts.const_data_ptr<int64_t>();
    std::vector<at::Tensor> texts;
    std::vector<int64_t> lengths;
    int64_t begin = 0;
    for (int64_t i = 0; i < counts.numel(); ++i) {
      texts.push_back(functional::hierarchical_token_pool(
          vectors.embeddings.narrow(0, begin, count[i]), pooling.factor, pooling.protected_tokens));
      lengths.push_back(texts.back().size(0));
      begin += count[i];
    }
    pooled = {at::cat(texts), at::tensor(lengths, at::kLong)};
  }
  if (pooling.normalize) pooled.embeddings = functional::l2_normalize(pooled.embeddings);
  return pooled;
}

}  // namespace posenc
