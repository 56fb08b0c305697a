#include "models/lora/heads.h"

#include <optional>
#include <string>

#include "models/types/model_class.h"
#include "models/types/model_types.h"

namespace posenc::lora {
namespace {

constexpr int64_t kDefaultLabels = 2;

struct Task {
  const char *type, *ending;  // of adapter_config.json, of the class
  const HeadStructure HeadStructures::*structure;
  bool has_labels = true;
};
constexpr Task kTasks[] = {
    {"SEQ_CLS", "ForSequenceClassification", &HeadStructures::sequence},
    {"TOKEN_CLS", "ForTokenClassification", &HeadStructures::token},
    {"QUESTION_ANS", "ForQuestionAnswering", &HeadStructures::question, false}};

std::string class_name(const hf::ModelType& model, const HeadStructure& head, const char* ending) {
  std::string stem = *model.model_class != '\0' ? std::string(model.model_class)
                                                : std::string(hf::model_class_of(model.type));
  for (const std::string ending : {"Model", "Encoder"})
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  const std::string own = head.class_ending;
  return stem + (own.empty() ? ending : own);
}

int64_t labels_in(const Settings& config) {
  const auto& labels = config.value("id2label");
  if (labels.is_object() && !labels.empty()) return static_cast<int64_t>(labels.size());
  return config.integer("num_labels", kDefaultLabels, 1, 1 << 20);
}

}  // namespace

Settings with_heads(const Settings& config, const std::vector<WeightedAdapter>& adapters) {
  nlohmann::json object = config.object();
  const hf::ModelType* const model = hf::find_model_type(config.text("model_type", ""));
  if (model == nullptr || model->heads == nullptr) return config;
  for (const auto& [adapter, scale] : adapters) {
    for (const Task& task : kTasks) {
      if (adapter.config.task_type() != task.type) continue;
      const HeadStructure& head = model->heads->*task.structure;
      const std::string out = head.out + std::string(".weight");
      if (*head.out == '\0' || !adapter.tensors.contains(out)) continue;
      object["architectures"] = {class_name(*model, head, task.ending)};
      const int64_t rows = adapter.tensors[out].size(0);
      if (!task.has_labels || rows == labels_in(config.with(object))) continue;
      object.erase("num_labels");
      object.erase("label2id");
      object["id2label"] = nlohmann::json::object();
      for (int64_t i = 0; i < rows; ++i)
        object["id2label"][std::to_string(i)] = "LABEL_" + std::to_string(i);
    }
  }
  return config.with(std::move(object));
}

}  // namespace posenc::lora
