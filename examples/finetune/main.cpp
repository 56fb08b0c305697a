// Trains an encoder-decoder of transformers (Marian, NLLB, BART, T5, ...) on pairs of texts, and
// saves it as a folder that transformers opens, tokenizer included:
//   finetune MODEL PAIRS OUT STEPS
// Each line of PAIRS has a source, a tab and a target. Ctrl-C stops with a checkpoint beside OUT,
// from which the same command goes on.
#include <posenc/models/save_pretrained.h>
#include <posenc/tokenizers/tensors.h>
#include <posenc/train/fused_adam.h>
#include <posenc/train/schedule_factor.h>
#include <posenc/train/stop_signal.h>
#include <posenc/train/token_cross_entropy.h>
#include <posenc/train/trainer.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

// The ids of each pair, of which those beyond 128 are cut off. A target begins with the model's
// start token.
std::vector<posenc::TokenPair> pairs_of(const std::string& path, const posenc::Tokenizer& tokenizer,
                                        int64_t start) {
  auto of_source = posenc::TokenizerOptions();
  of_source.truncation(posenc::tokenizer::Truncation::LongestFirst).max_length(128);
  auto of_target = of_source;
  of_target.target(true);
  std::ifstream file(path);
  std::vector<posenc::TokenPair> pairs;
  for (std::string line; std::getline(file, line);) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) throw std::runtime_error(path + ": a line without a tab");
    posenc::TokenPair pair = {tokenizer.encode_ids(line.substr(0, tab), {}, of_source), {start}};
    const auto target = tokenizer.encode_ids(line.substr(tab + 1), {}, of_target);
    pair.tgt.insert(pair.tgt.end(), target.begin(), target.end());
    pairs.push_back(pair);
  }
  return pairs;
}

// Returns false if it was stopped.
bool train(const posenc::Seq2SeqModel& loaded, posenc::PairLoader& loader,
           const std::string& checkpoint, int64_t steps) {
  posenc::Transformer model = loaded.model;  // the same model
  posenc::FusedAdamW optimizer(model->parameters(), posenc::FusedAdamWOptions(5e-5));
  const auto shape =
      posenc::ScheduleOptions().num_warmup_steps(steps / 10).num_training_steps(steps);
  posenc::LambdaLR schedule(optimizer, posenc::schedule_factor("linear", shape));
  const auto loss = [&](const posenc::PairBatch& batch) {
    const auto logits = model->forward(batch.src, batch.tgt_input(), batch.src_mask(),
                                       posenc::AttentionMask::causal());
    return posenc::functional::token_cross_entropy(
        logits, batch.tgt_labels(),
        posenc::functional::TokenCrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(
            batch.pad_id));
  };
  posenc::StopSignal stop;
  auto options = posenc::TrainerOptions(steps).clip_norm(1.0).checkpoint(checkpoint);
  options.checkpoint_every(500).stop([&] { return stop.requested(); });
  options.report(
      [](const posenc::TrainingProgress& progress) { std::cerr << progress.to_string() << '\n'; });
  posenc::Trainer trainer({*model, &optimizer, &schedule}, loader, loss, options);
  if (std::filesystem::exists(checkpoint)) trainer.resume(checkpoint);
  return trainer.train();
}

int run(const std::string& folder, const std::string& pairs, const std::string& out,
        int64_t steps) {
  const auto loaded = posenc::load_seq2seq(folder);
  const auto tokenizer = posenc::Tokenizer::from_folder(folder);
  posenc::PairLoader loader(pairs_of(pairs, tokenizer, loaded.generation.bos_id()),
                            posenc::PairLoaderOptions().pad_id(loaded.pad).max_tokens(4096));
  if (!train(loaded, loader, out + ".checkpoint", steps)) return 130;
  posenc::save_pretrained(loaded, out);
  std::filesystem::remove(out + ".checkpoint");
  std::cout << "saved " << out << '\n';
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: finetune MODEL PAIRS OUT STEPS\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3], std::stoll(argv[4]));
  } catch (const c10::Error& error) {
    std::cerr << "finetune: " << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "finetune: " << error.what() << '\n';
  }
  return 1;
}
