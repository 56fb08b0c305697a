// posenc's side of docs/performance.md, which tools/measure_programs.py asks as it asks the other
// programs (program_peers.py):
//
//   posenc_program_benchmark FOLDER encoder|translation float32|bfloat16|int8
//
// FOLDER has `model`, a folder of transformers, and `ids.txt`, a sequence a line. Each line of
// stdin, `FIRST COUNT BATCH TOKENS BEAMS [FILE]`, runs COUNT sequences from FIRST on in batches,
// and is answered with seconds; with FILE the mean of the hidden states of each sequence, or its
// tokens, are written there. At the end the peak memory of the process is printed, in MB. One
// thread.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "memory.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/models/seq2seq.h"

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

Call translation(const std::string& folder, const posenc::FreezeOptions& options) {
  auto loaded = posenc::load_seq2seq(folder + "/model");
  const auto model = posenc::freeze(std::move(loaded.model), options);
  return [model, search = loaded.generation, pad = loaded.pad](const Rows& rows,
                                                               const Asked& asked) -> Text {
    auto wanted = search;
    wanted.max_new_tokens(asked.tokens).min_new_tokens(asked.tokens).num_beams(asked.beams);
    const auto found = posenc::generate(model, padded(rows, pad), {}, wanted);
    return [found](std::ostream& out) {
      for (const auto& best : found) {
        for (const int64_t token : best[0].tokens) out << token << ' ';
        out << '\n';
      }
    };
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

posenc::FreezeOptions options_of(const std::string& name) {
  auto options = posenc::FreezeOptions().threads(1);
  if (name == "int8") options.weights(posenc::WeightDtype::Int8);
  if (name == "bfloat16")
    options.weights(posenc::WeightDtype::BFloat16).compute(posenc::ComputeDtype::BFloat16);
  return options;
}

}  // namespace

int main(int count, char** given) {
  if (count != 4) return 2;
  at::set_num_threads(1);
  const std::string folder = given[1];
  const auto options = options_of(given[3]);
  const Rows rows = sources(folder);
  const bool encodes = std::string(given[2]) == "encoder";
  const Call call = encodes ? encoder(folder, options) : translation(folder, options);
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
