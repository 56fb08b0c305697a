// Vectors in 8 bits and 1 bit, and chat templates.

#include <map>

#include "differential/ops.h"
#include "posenc/models/functional/quantize.h"
#include "posenc/text/chat_template.h"

namespace posenc::differential {
namespace {

StateDict quantize_embeddings(const Json& options, const StateDict& tensors) {
  using functional::EmbeddingPrecision;
  const std::map<std::string, EmbeddingPrecision> precisions = {
      {"int8", EmbeddingPrecision::Int8},
      {"uint8", EmbeddingPrecision::UInt8},
      {"binary", EmbeddingPrecision::Binary},
      {"ubinary", EmbeddingPrecision::UBinary}};
  const at::Tensor ranges = tensors.contains("ranges") ? tensors["ranges"] : at::Tensor();
  StateDict results;
  results.insert("embeddings", functional::quantize_embeddings(
                                   tensors["x"], precisions.at(options.at("precision")), ranges)
                                   .embeddings);
  return results;
}

// The bytes of the text.
StateDict chat_template(const Json& options, const StateDict& /*tensors*/) {
  const ChatTemplate chat(options.at("template").get<std::string>(), options.at("tokens"));
  const std::string text = chat.apply_json(
      options.at("messages").get<std::string>(),
      ChatTemplateOptions()
          .add_generation_prompt(options.at("add_generation_prompt"))
          .continue_final_message(options.value("continue_final_message", false))
          .variables(options.at("variables").get<std::string>())
          .strftime_now([](const std::string& format) { return "<" + format + ">"; }));
  StateDict results;
  results.insert("text", torch::tensor(std::vector<uint8_t>(text.begin(), text.end()), at::kByte));
  return results;
}

}  // namespace

Ops rerank_ops() {
  return {{"quantize_embeddings", quantize_embeddings}, {"chat_template", chat_template}};
}

}  // namespace posenc::differential
