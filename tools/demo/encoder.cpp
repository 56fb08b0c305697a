// The first step of the demo: loads the tokenizer and the encoder in a folder of Hugging Face's
// transformers, and compares them with the ids and outputs that transformers saved beside them.
// encoder.py runs it.
//   posenc-demo-encoder FOLDER THREADS
// Prints how many ids differ, the largest difference of the outputs, and for each line of standard
// input the milliseconds of one more forward pass.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <posenc/models/frozen_encoder.h>
#include <posenc/weights/safetensors.h>
#include <posenc/models/encoder.h>
#include <posenc/tokenizers/tensors.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

int64_t differing_ids(const torch::Tensor& ids, const torch::Tensor& expected) {
  return ids.sizes() == expected.sizes() ? ids.ne(expected).sum().item<int64_t>() : expected.numel();
}

void run(const std::string& folder, int threads) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(threads);
  const auto sample = posenc::load_safetensors(folder + "/sample.safetensors").tensors;
  const auto tokenizer = posenc::Tokenizer::from_folder(folder);
  const auto batch = tokenizer.encode(lines_of(folder + "/sentences.txt"));
  fmt::print("{}\n", differing_ids(batch.input_ids, sample["input_ids"]));
  const auto ids = sample["input_ids"], mask = batch.attention_mask;  // (B, L)

  const auto bert = posenc::freeze(posenc::load_encoder(folder));
  const auto inputs = posenc::EncoderInputs().attention_mask(mask);
  const auto vectors = bert.forward(ids, inputs).last_hidden_state;  // (B, L, D)

  const auto real = mask.ne(0).unsqueeze(2);
  const auto difference = (vectors - sample["last_hidden_state"]).mul(real).abs().max();
  fmt::print("{:.3e}\n", difference.item<float>());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    bert.forward(ids, inputs);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    fmt::print("{:.3f}\n", took.count());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: posenc-demo-encoder FOLDER THREADS\n");
    return 2;
  }
  try {
    run(argv[1], std::stoi(argv[2]));
    return 0;
  } catch (const c10::Error& error) {
    fmt::print(stderr, "posenc-demo-encoder: {}\n", error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "posenc-demo-encoder: {}\n", error.what());
    return 1;
  }
}
