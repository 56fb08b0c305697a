#include "differential/ops.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/sentence_folder.h"

namespace posenc::differential {
namespace {

// The vectors of ids, by the encoder of a folder of sentence-transformers and its stages.
StateDict sentences(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  const SentenceRoute read = read_sentence_folder(folder).route();
  SentenceStages stages = load_sentence_stages(folder);
  const at::Tensor& ids = tensors["input_ids"];
  StateDict results;
  if (read.first == sentence::FirstStage::StaticEmbedding) {
    const at::Tensor table = load_static_embedding(read.encoder);
    results.insert("vectors", stages->forward(table.index_select(0, ids.flatten()).mean(0, true)));
    return results;
  }
  const at::Tensor& mask = tensors["attention_mask"];
  const auto inputs =
      EncoderInputs().attention_mask(mask).output_hidden_states(stages->needs_hidden_states());
  Encoder encoder = load_encoder(read.encoder);
  const bool is_frozen = options.at("frozen");
  const EncoderOutput out =
      is_frozen ? freeze(encoder).forward(ids, inputs) : encoder->forward(ids, inputs);
  results.insert("vectors", stages->forward(out.last_hidden_state, mask,
                                            options.at("prompt_length"), ids, out.hidden_states));
  return results;
}

}  // namespace

Ops sentence_ops() { return {{"sentences", sentences}}; }

}  // namespace posenc::differential
