// posenc's side of docs/performance.md, which tools/measure_programs.py asks as it asks the other
// programs (program_peers.py):
//
//   posenc_program_benchmark FOLDER encoder|translation|speech DTYPE [THREADS]
//
// DTYPE: one of options_of(); or limit_float32, limit_bfloat16, limit_int8 or limit_int8_bfloat16:
// the time in which this processor can multiply and add as often as the encoder does, if nothing
// waits for memory (limit.h), on one thread. Prints `ready`, or
// `lacks` where the processor has no such instruction.
// FOLDER has `model`, a folder of transformers, and `ids.txt`, a sequence a line, for speech the
// number of one of the arrays in `sounds`, of which speech_peers.py says more. Each line of
// stdin, `FIRST COUNT BATCH TOKENS BEAMS [FILE]`, runs COUNT sequences from FIRST on in batches,
// and is answered with seconds; with FILE the mean of the hidden states of each sequence, or its
// tokens, are written there. At the end the peak memory of the process is printed, in MB.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "limit.h"
#include "memory.h"
#include "posenc/inference/encoded_sources.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/models/seq2seq.h"
#include "posenc/speech/speech_recognizer.h"

namespace {

using Rows = std::vector<std::vector<int64_t>>;

struct Asked {
  size_t first = 0, count = 0, batch = 0;
  int64_t tokens = 0, beams = 0;
  std::string file;
};

// What a call computes, and its rows as text, which are made if they are wanted.
using Text = std::function<void(std::ostream&)>;
using Call = std::function<Text(const Rows&, const Asked&)>;

Rows sources(const std::string& folder) {
  std::ifstream in(folder + "/ids.txt");
  Rows rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (int64_t id = 0; words >> id;) rows.back().push_back(id);
  }
  return rows;
}

torch::Tensor padded(const Rows& rows, int64_t pad) {
  size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const auto size = static_cast<int64_t>(longest);
  auto ids = torch::full({static_cast<int64_t>(rows.size()), size}, pad, torch::kLong);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), ids.data_ptr<int64_t>() + i * longest);
  return ids;
}

Call encoder(const std::string& folder, const posenc::FreezeOptions& options) {
  const auto model = posenc::freeze(posenc::load_encoder(folder + "/model"), options);
  return [model](const Rows& rows, const Asked&) -> Text {
    const auto ids = padded(rows, 0);
    const auto mask = ids != 0;
    const auto hidden =
        model.forward(ids, posenc::EncoderInputs().attention_mask(mask)).last_hidden_state;
    return [hidden, mask](std::ostream& out) {
      const auto means = posenc::functional::mean_pool(hidden, mask);
      for (int64_t i = 0; i < means.size(0); ++i) {
        for (int64_t j = 0; j < means.size(1); ++j) out << means[i][j].item<float>() << ' ';
        out << '\n';
      }
    };
  };
}

Text written(const std::vector<std::vector<int64_t>>& rows) {
  return [rows](std::ostream& out) {
    for (const auto& row : rows) {
      for (const int64_t token : row) out << token << ' ';
      out << '\n';
    }
  };
}

Call translation(const std::string& folder, const posenc::FreezeOptions& options) {
  auto loaded = posenc::load_seq2seq(folder + "/model");
  const auto model = posenc::freeze(std::move(loaded.model), options);
  return [model, search = loaded.generation, pad = loaded.pad](const Rows& rows,
                                                               const Asked& asked) -> Text {
    auto wanted = search;
    wanted.max_new_tokens(asked.tokens).min_new_tokens(asked.tokens).num_beams(asked.beams);
    const auto found = posenc::generate(model, padded(rows, pad), {}, wanted);
    std::vector<std::vector<int64_t>> rows_of_tokens;
    for (const auto& best : found) rows_of_tokens.push_back(best[0].tokens);
    return written(rows_of_tokens);
  };
}

// Of English text without timestamps.
posenc::GenerateOptions search_of(const std::string& folder) {
  std::ifstream in(folder + "/model/generation_config.json");
  const auto config = nlohmann::json::parse(in);
  const int64_t start = config.at("decoder_start_token_id");
  return posenc::GenerateOptions(start, config.at("eos_token_id").get<int64_t>())
      .prefixes({{start, config.at("lang_to_id").at("<|en|>"),
                  config.at("task_to_id").at("transcribe"), config.at("no_timestamps_token_id")}});
}

Call speech(const std::string& folder, const posenc::FreezeOptions& options) {
  using posenc::TranscribeOptions;
  const auto recognizer = posenc::load_speech_recognizer(folder + "/model", options);
  const auto sound = [folder](int64_t number) {
    return posenc::read_waveform(folder + "/sounds/" + std::to_string(number) + ".npy", 16000);
  };
  const auto of_text = [](int64_t tokens) {
    return TranscribeOptions().language("en").task("transcribe").max_new_tokens(tokens);
  };
  const auto first = recognizer.features(sound(0)).input_features;
  const auto encoded = posenc::encode_sources(recognizer.model(), first);
  const auto search = search_of(folder);
  return [=](const Rows& rows, const Asked& asked) -> Text {
    if (asked.tokens == 0) {
      recognizer.model().encode(first);
      return written({});
    }
    std::vector<std::vector<int64_t>> found;
    if (asked.beams == 0) {
      std::vector<posenc::Waveform> sounds;
      for (const auto& row : rows) sounds.push_back(sound(row[0]));
      const auto size = static_cast<int64_t>(rows.size());
      for (const auto& one : recognizer.transcribe(sounds, of_text(asked.tokens).batch_size(size)))
        found.push_back(one.tokens);
    } else {
      auto wanted = search;
      wanted.max_new_tokens(asked.tokens).num_beams(asked.beams);
      for (const auto& best : encoded.generate(wanted)) found.push_back(best[0].tokens);
    }
    return written(found);
  };
}

// The multiply-adds of an encoder, in what they are computed in.
struct Work {
  posenc::benchmarks::MultiplyAdds linear, scores, values;
};

Work work_of(const std::string& dtype) {
  const auto [float32, bfloat16, int8] = posenc::benchmarks::processor_limits();
  if (dtype == "float32") return {float32, float32, float32};
  if (dtype == "bfloat16") return {bfloat16, bfloat16, bfloat16};
  if (dtype == "int8") return {int8, float32, float32};
  return {int8, bfloat16, bfloat16};
}

bool is_complete(const Work& work) { return work.linear && work.scores && work.values; }

Call limit(const std::string& folder, const std::string& dtype) {
  const Work work = work_of(dtype);
  if (!is_complete(work)) return nullptr;
  std::ifstream in(folder + "/model/config.json");
  const auto config = nlohmann::json::parse(in);
  const double width = config.at("hidden_size"), hidden = config.at("intermediate_size");
  const double layers = config.at("num_hidden_layers");
  return [=](const Rows& rows, const Asked&) -> Text {
    double tokens = 0, pairs = 0;
    for (const auto& row : rows) {
      const auto length = static_cast<double>(row.size());
      tokens += length;
      pairs += length * length;
    }
    work.linear(layers * tokens * width * (4 * width + 2 * hidden));
    work.scores(layers * pairs * width);
    work.values(layers * pairs * width);
    return [](std::ostream&) {};
  };
}

double run(const Call& call, const Rows& all, const Asked& asked) {
  std::vector<Rows> batches;
  for (size_t i = 0; i < asked.count; i += asked.batch) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(asked.first + i);
    const size_t size = std::min(asked.batch, asked.count - i);
    batches.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  std::vector<Text> results;
  const auto start = std::chrono::steady_clock::now();
  for (const Rows& rows : batches) results.push_back(call(rows, asked));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (!asked.file.empty()) {
    std::ofstream out(asked.file);
    for (const Text& write : results) write(out);
  }
  return taken.count();
}

posenc::FreezeOptions options_of(const std::string& dtype, int threads) {
  using posenc::ComputeDtype, posenc::FreezeOptions, posenc::WeightDtype;
  const FreezeOptions float32 = FreezeOptions().threads(threads);
  const FreezeOptions rounded = FreezeOptions(float32).weights(WeightDtype::BFloat16);
  const FreezeOptions int8 = FreezeOptions(float32).weights(WeightDtype::Int8);
  const std::map<std::string, FreezeOptions> known = {
      {"float32", float32},
      {"bfloat16_weights", rounded},
      {"bfloat16", FreezeOptions(rounded).compute(ComputeDtype::BFloat16)},
      {"int8", int8},
      {"int8_float32_scores", FreezeOptions(int8).int8_scores(false)},
      {"int8_block_128", FreezeOptions(int8).int8_block(128)},
      {"int8_block_64", FreezeOptions(int8).int8_block(64)},
      {"int8_bfloat16", FreezeOptions(int8).compute(ComputeDtype::BFloat16)}};
  return known.at(dtype);
}

Call call_of(const std::string& folder, const std::string& kind, const std::string& dtype,
             int threads) {
  const std::string of_limit = "limit_";
  if (dtype.rfind(of_limit, 0) == 0) return limit(folder, dtype.substr(of_limit.size()));
  const auto options = options_of(dtype, threads);
  if (kind == "speech") return speech(folder, options);
  return kind == "encoder" ? encoder(folder, options) : translation(folder, options);
}

}  // namespace

int main(int count, char** given) {
  if (count != 4 && count != 5) return 2;
  const int threads = count == 5 ? std::stoi(given[4]) : 1;
  at::set_num_threads(threads);
  const std::string folder = given[1];
  const Rows rows = sources(folder);
  const Call call = call_of(folder, given[2], given[3], threads);
  if (!call) {
    std::cout << "lacks" << std::endl;
    return 0;
  }
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Asked asked;
    std::istringstream words(line);
    words >> asked.first >> asked.count >> asked.batch >> asked.tokens >> asked.beams >> asked.file;
    std::cout << run(call, rows, asked) << std::endl;
  }
  std::cout << static_cast<int>(posenc::benchmarks::resident("VmHWM")) << '\n';
  return 0;
}
