// The first step of the demo: loads the encoder in a folder of Hugging Face's transformers, and
// compares it with the outputs that transformers saved beside it. encoder.py runs it.
//   posenc-demo-encoder FOLDER THREADS
// Prints the largest difference, and for each line of standard input the milliseconds of one more
// forward pass.

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <posenc/inference/frozen_encoder.h>
#include <posenc/io/safetensors.h>
#include <posenc/models/encoder.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

namespace {

void run(const std::string& folder, int threads) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(threads);
  const auto sample = posenc::load_safetensors(folder + "/sample.safetensors").tensors;
  const auto ids = sample["input_ids"], mask = sample["attention_mask"];  // (B, L)

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
