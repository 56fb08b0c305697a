// posenc-differential IN OUT: runs many cases in one process. IN is a safetensors file whose
// metadata `cases` is a JSON list of options, including `op`; the tensors of case 3 are `3/NAME`.
// OUT has the results in the same form, and in its metadata the message of each case that failed.

#include <torch/types.h>

#include <iostream>
#include <set>

#include "differential/ops.h"
#include "posenc/weights/safetensors.h"

namespace posenc::differential {
namespace {

// By the number of the case.
std::map<std::string, StateDict> by_case(const StateDict& all) {
  std::map<std::string, StateDict> cases;
  for (const auto& item : all) {
    const size_t slash = item.key().find('/');
    cases[item.key().substr(0, slash)].insert(item.key().substr(slash + 1), item.value());
  }
  return cases;
}

void run(const std::string& from, const std::string& to) {
  Ops ops;
  for (const auto& some : {attention_ops(),     bfloat16_ops(),
                           clipping_ops(),      decoder_ops(),
                           embedding_ops(),     encoder_ops(),
                           file_ops(),          embeddings_ops(),
                           frozen_ops(),        function_ops(),
                           int8_ops(),          layer_ops(),
                           lora_ops(),          marian_ops(),
                           model_ops(),         module_ops(),
                           multivector_ops(),   optimizer_ops(),
                           rerank_ops(),        rotary_ops(),
                           rotary_taker_ops(),  output_ops(),
                           pair_ops(),          saved_ops(),
                           saved_seq2seq_ops(), sequence_attention_ops(),
                           sentence_ops(),      sentence_text_ops(),
                           seq2seq_ops(),       sinusoid_ops(),
                           training_ops(),      speech_ops(),
                           vision_ops(),        whisper_ops(),
                           relative_ops(),      search_ops()})
    ops.insert(some.begin(), some.end());
  const SafetensorsFile file = load_safetensors(from);
  const auto cases = Json::parse(file.metadata.at("cases"));
  std::map<std::string, StateDict> tensors = by_case(file.tensors);
  StateDict results;
  std::map<std::string, std::string> errors;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string number = std::to_string(i);
    std::cerr << number << "\n";  // if the program crashes, the last line names the case
    try {
      const auto got = ops.at(cases[i].at("op"))(cases[i], tensors[number]);
      for (const auto& item : got)
        results.insert(number + "/" + item.key(), item.value().detach().contiguous());
    } catch (const c10::Error& error) {
      errors[number] = error.what_without_backtrace();
    } catch (const std::exception& error) {
      errors[number] = error.what();
    }
  }
  save_safetensors(to, results, errors);
}

}  // namespace
}  // namespace posenc::differential

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    posenc::differential::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
