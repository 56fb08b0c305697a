#include "text/sentence/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "models/config/settings.h"
#include "models/lora/adapted_folder.h"
#include "posenc/models/frozen_file.h"

namespace posenc::text {
namespace {

namespace fs = std::filesystem;
using sentence::FirstStage;
using sentence::Task;

constexpr uint64_t kMostWeights = 256'000'000;  // bytes of a file of weights by tokens

void check_options(const char* caller, const SentenceFolder& folder, const FreezeOptions& options) {
  const bool are_static =
      std::all_of(folder.routes.begin(), folder.routes.end(), [](const SentenceRoute& route) {
        return route.first == FirstStage::StaticEmbedding || route.first == FirstStage::Tokens;
      });
  const bool converts =
      options.weights() != WeightDtype::Float32 || options.compute() != ComputeDtype::Float32;
  TORCH_CHECK_VALUE(!are_static || (!converts && options.weights_to_not_convert().empty()), "[",
                    caller,
                    "] weights must be float32, without exceptions, for a static embedding, which "
                    "is looked up and not frozen. Got ",
                    converts ? "another dtype" : "weights_to_not_convert");
}

// Markers that are tokens of the vocabulary, but would be cut into others, are added to it as they
// are.
Tokenizer tokenizer_of(const char* caller, const SentenceRoute& route, const std::string& base) {
  if (route.first == FirstStage::StaticEmbedding)
    return Tokenizer::from_file((fs::path(route.encoder) / "tokenizer.json").string());
  const std::string folder = tokenizer_folder(caller, route.encoder, base);
  Tokenizer tokenizer = Tokenizer::from_folder(folder, route.do_lower_case);
  std::vector<std::string> added;
  for (const std::string& marker : route.markers) {
    const auto begin = marker.find_first_not_of(' '), end = marker.find(' ', begin);
    if (begin == std::string::npos) continue;
    for (const std::string& token : {marker, marker.substr(begin, end - begin)}) {
      if (!tokenizer.token_to_id(token)) continue;
      const auto own =
          tokenizer.encode_one(token, std::nullopt, TokenizerOptions().add_special_tokens(false));
      const bool is_whole =
          own.size() == 1 && own.front().tokens == std::vector<std::string>{token};
      if (!is_whole) added.push_back(token);
      break;
    }
  }
  if (added.empty()) return tokenizer;
  return Tokenizer::from_folder(folder, route.do_lower_case, added);
}

FirstModel load_first(const Tokenizer& tokenizer, const SentenceRoute& route,
                      const FreezeOptions& options, const LoadOptions& load) {
  FirstModel first = {tokenizer};
  switch (route.first) {
    case FirstStage::Encoder:
      first.encoder = load_and_freeze_encoder(route.encoder, options, load);
      break;
    case FirstStage::MaskedHead:
      first.classifier =
          load_and_freeze_classifier(route.encoder, options, load, head::Kind::Masked);
      break;
    case FirstStage::StaticEmbedding:
      first.table = load_static_embedding(route.encoder, load);
      break;
    case FirstStage::Tokens: break;
  }
  return first;
}

RowRules rules_of(const FirstModel& first, std::optional<int64_t> max_length) {
  if (first.encoder) return row_rules(first.tokenizer, first.encoder->options(), max_length);
  if (first.classifier)
    return row_rules(first.tokenizer, first.classifier->options().encoder(), max_length);
  RowRules rules;
  rules.options.add_special_tokens(false).padding_side(tokenizer::Side::Right);
  if (max_length)
    rules.options.truncation(tokenizer::Truncation::LongestFirst).max_length(*max_length);
  return rules;
}

// A table has a weight for each token of the tokenizer in its folder.
void complete_table(const char* caller, const SentenceRoute& route, const Tokenizer& tokenizer,
                    SentenceStageFolder& own) {
  int64_t& count = std::get<sentence::SparseStaticEmbedding>(own.stage).vocab_size;
  if (!own.weights.empty()) count = tokenizer.vocab_size();
  TORCH_CHECK_VALUE(own.folder != route.encoder || count >= tokenizer.vocab_size(), "[", caller,
                    "] ", own.folder, ": weight must have an entry for each token, ",
                    tokenizer.vocab_size(), ". Got ", count);
}

// What of stages only the tokenizer of their route knows.
void complete_stages(const char* caller, SentenceRoute& route, const Tokenizer& tokenizer) {
  for (SentenceStageFolder& own : route.stages) {
    if (std::holds_alternative<sentence::SparseStaticEmbedding>(own.stage))
      complete_table(caller, route, tokenizer, own);
    if (auto* const stage = std::get_if<sentence::LexicalWeights>(&own.stage))
      for (const char* name : {"cls_token", "eos_token", "pad_token", "unk_token"})
        if (const auto id = tokenizer.special_token_id(name))
          stage->unused_token_ids.push_back(*id);
  }
}

// Weights by tokens; those of tokens that the tokenizer lacks are its unknown token's.
void load_weights_by_tokens(const char* caller, const SentenceStageFolder& stage,
                            const Tokenizer& tokenizer, torch::nn::Module& module) {
  const posenc::Settings config(caller, stage.weights, kMostWeights);
  at::Tensor weight = at::zeros({tokenizer.vocab_size()}, at::kFloat);
  const auto unknown = tokenizer.special_token_id("unk_token");
  for (const auto& [token, value] : config.object().items()) {
    const auto known = tokenizer.token_to_id(token);
    const auto id = known ? known : unknown;
    if (!value.is_number() || !std::isfinite(value.get<float>()))
      config.refuse(token, "must be a finite number, the weight of a token");
    if (!id || *id >= weight.size(0)) config.refuse(token, "must be a token of the tokenizer");
    weight.data_ptr<float>()[*id] = value.get<float>();
  }
  const torch::NoGradGuard no_grad;
  module.named_parameters()["weight"].copy_(weight);
}

// Tokens of the prompt alone, but for a special one at its end: whatever the template adds there
// counts unless the tokenizer calls it special, as in sentence-transformers.
int64_t tokens_of_prompt(const TaskModel& model, const std::string& prompt) {
  if (prompt.empty() || !model.stages->excludes_prompt()) return 0;
  const Tokenizer& tokenizer = model.first->tokenizer;
  const auto ids = tokenizer.encode_ids(prompt, std::nullopt, model.prompt_options);
  const auto special = tokenizer.special_token_ids();
  const bool ends_specially =
      !ids.empty() && std::find(special.begin(), special.end(), ids.back()) != special.end();
  return static_cast<int64_t>(ids.size()) - (ends_specially ? 1 : 0);
}

TaskModel task_model(const SentenceFolder& folder, const SentenceRoute& route, Task task,
                     const std::shared_ptr<const FirstModel>& first, const SentenceStages& stages) {
  TaskModel model;
  model.first = first;
  model.stages = stages;
  const auto own = first->tokenizer.model_max_length();
  model.max_length = max_tokens_of_text(route, task, own);
  model.rules = rules_of(*first, model.max_length);
  model.prompt_options = rules_of(*first, max_tokens_of_text(route, Task::None, own)).options;
  for (const auto& [name, prompt] : folder.prompts)
    model.prompt_lengths.emplace(prompt, tokens_of_prompt(model, prompt));
  return model;
}

// The parts of a model are `encoder` and `stages`; routes after the first have a number.
void add_encoder(LoadReport& all, const LoadReport& own, std::size_t route) {
  const std::string part = (route > 0 ? "routes." + std::to_string(route) + "." : "") + "encoder.";
  const auto add = [&](std::vector<std::string> LoadReport::*names, const std::string& before) {
    for (const std::string& name : own.*names) (all.*names).push_back(before + name);
  };
  for (auto names : {&LoadReport::loaded, &LoadReport::missing, &LoadReport::cast})
    add(names, part);
  for (auto names : {&LoadReport::unexpected, &LoadReport::ignored, &LoadReport::unused_patterns})
    add(names, "");
  all.tables.insert(all.tables.end(), own.tables.begin(), own.tables.end());
}

}  // namespace

const TaskModel& SentenceModel::of(Task task) const {
  const auto found = tasks.find(task);
  if (found == tasks.end()) folder.route(task);  // which has the error
  return found->second;
}

std::shared_ptr<const SentenceModel> load_sentence_model(const char* caller, SentenceFolder folder,
                                                         const FreezeOptions& options,
                                                         const LoadOptions& load) {
  check_options(caller, folder, options);
  auto model = std::make_shared<SentenceModel>();
  model->call = {.threads = options.threads()};
  std::map<std::string, Tokenizer> tokenizers;  // by folder
  for (SentenceRoute& route : folder.routes) {
    const auto known = tokenizers.find(route.encoder);
    const Tokenizer& own =
        known != tokenizers.end()
            ? known->second
            : tokenizers.emplace(route.encoder, tokenizer_of(caller, route, load.base()))
                  .first->second;
    complete_stages(caller, route, own);
  }
  LoadReport report, of_stages;
  const auto stages = load_sentence_stages(folder, LoadOptions(load).report(&of_stages));
  std::map<std::string, std::shared_ptr<const FirstModel>> firsts;  // by folder
  for (std::size_t i = 0; i < folder.routes.size(); ++i) {
    const SentenceRoute& route = folder.routes[i];
    std::shared_ptr<const FirstModel>& first = firsts[route.encoder];
    if (!first) {
      LoadReport own;
      first = std::make_shared<const FirstModel>(
          load_first(tokenizers.at(route.encoder), route, options, LoadOptions(load).report(&own)));
      add_encoder(report, own, i);
    }
    for (std::size_t j = 0; j < route.stages.size(); ++j)
      if (route.stages[j].weights.ends_with(".json"))
        load_weights_by_tokens(caller, route.stages[j], first->tokenizer,
                               *stages[i]->named_children()[std::to_string(j + 1)]);
    for (const Task task : route.tasks)
      model->tasks.emplace(task, task_model(folder, route, task, first, stages[i]));
  }
  for (const std::string& name : of_stages.loaded) report.loaded.push_back("stages." + name);
  for (const std::string& name : of_stages.unexpected) report.unexpected.push_back(name);
  if (load.report() != nullptr) *load.report() = std::move(report);
  model->folder = std::move(folder);
  return model;
}

int64_t prompt_length(const TaskModel& model, const std::string& prompt) {
  const auto known = model.prompt_lengths.find(prompt);
  return known != model.prompt_lengths.end() ? known->second : tokens_of_prompt(model, prompt);
}

}  // namespace posenc::text
