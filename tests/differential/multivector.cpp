#include "differential/ops.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/models/functional/similarity.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/text/multi_vector_encoder.h"

namespace posenc::differential {
namespace {

StateDict maxsim(const Json& options, const StateDict& tensors) {
  StateDict results;
  results.insert("scores",
                 functional::maxsim({tensors["queries"], tensors["query_lengths"]},
                                    {tensors["documents"], tensors["document_lengths"]},
                                    functional::MaxSimOptions().mean(options.at("mean"))));
  return results;
}

StateDict token_pools(const Json& options, const StateDict& tensors) {
  StateDict results;
  for (const auto& item : tensors) {
    const Json& own = options.at("pools").at(item.key());
    results.insert(item.key(), functional::hierarchical_token_pool(item.value(), own.at("factor"),
                                                                   own.at("protected")));
  }
  return results;
}

sentence::Task task_of(const Json& task) {
  if (task.is_null()) return sentence::Task::None;
  return task == "query" ? sentence::Task::Query : sentence::Task::Document;
}

MultiVectorEncodeOptions options_of(const Json& call) {
  MultiVectorEncodeOptions options;
  options.task(task_of(call.at("task")))
      .normalize(call.at("normalize"))
      .batch_size(call.at("batch_size"));
  if (!call.at("prompt").is_null()) options.prompt(call.at("prompt").get<std::string>());
  const Json& pooling = call.at("pooling");
  if (!pooling.is_null())
    options.token_pooling(sentence::TokenPooling{pooling.at("factor"), pooling.at("protected"),
                                                 pooling.at("normalize")});
  return options;
}

// The vectors of texts, by several calls of a folder's model, and the scores of others.
StateDict multi_vectors(const Json& options, const StateDict& tensors) {
  const MultiVectorEncoder model = load_multi_vector_encoder(
      options.at("folder"), {}, LoadOptions().base(options.value("base", "")));
  StateDict results;
  for (std::size_t i = 0; i < options.at("calls").size(); ++i) {
    const Json& call = options.at("calls")[i];
    const MultiVectors vectors =
        model.encode(call.at("texts").get<std::vector<std::string>>(), options_of(call));
    results.insert(std::to_string(i) + ".embeddings", vectors.embeddings);
    results.insert(std::to_string(i) + ".lengths", vectors.lengths);
  }
  results.insert("scores",
                 model.similarity({tensors["queries.embeddings"], tensors["queries.lengths"]},
                                  {tensors["documents.embeddings"], tensors["documents.lengths"]}));
  return results;
}

// A folder's model with other weights, saved, and the vectors of texts by what was saved.
StateDict save_multi_vectors(const Json& options, const StateDict& /*tensors*/) {
  const std::string folder = options.at("folder"), out = options.at("out");
  Encoder encoder = load_encoder(read_sentence_folder(folder).route().encoder);
  SentenceStages stages = load_sentence_stages(folder);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& one : encoder->parameters()) one.mul_(1.0625);
    for (const auto& one : stages->parameters()) one.mul_(0.9375);
  }
  save_sentence_model(encoder, stages, out, SaveSentenceModelOptions(folder));
  const Json& call = options.at("calls")[0];
  const MultiVectors vectors = load_multi_vector_encoder(out).encode(
      call.at("texts").get<std::vector<std::string>>(), options_of(call));
  StateDict results;
  results.insert("embeddings", vectors.embeddings);
  results.insert("lengths", vectors.lengths);
  return results;
}

}  // namespace

Ops multivector_ops() {
  return {{"maxsim", maxsim},
          {"multi_vectors", multi_vectors},
          {"save_multi_vectors", save_multi_vectors},
          {"token_pools", token_pools}};
}

}  // namespace posenc::differential
