// posenc-pronounce on a tiny task: trained, stopped, killed, resumed, and rejected.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/program.h"
#include "posenc/weights/safetensors.h"
#include "weights/files.h"

extern char** environ;

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

// A language of 150 words that are pronounced as they are spelled.
std::string dictionary_text() {
  std::string text;
  for (const char a : std::string("bdgklmn")) {
    for (const char b : std::string("aeiou")) {
      for (const char c : std::string("prst")) {
        for (const char* tail : {"", "o"}) {
          const std::string word = std::string{a, b, c} + tail;
          text += word;
          for (const char letter : word) text += std::string(" ") + static_cast<char>(letter - 32);
          text += "\n";
        }
      }
    }
  }
  return text;
}

Result run(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {POSENC_PRONOUNCE};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_loaded(command);
}

// Expects an error of the subcommand `name`.
void expect_error(const Result& result, const std::string& name, const std::string& text) {
  expect_refused_by("posenc-pronounce " + name, result, text);
}

class Train : public InFolder {
 protected:
  // Command line for a tiny training run into the folder `out`; `more` overrides and adds options.
  std::vector<std::string> command(const std::string& out,
                                   const std::map<std::string, std::string>& more = {}) const {
    std::map<std::string, std::string> options = {{"--dictionary", dictionary_},
                                                  {"--out", file(out)},
                                                  {"--rows", "16"},
                                                  {"--steps", "240"},
                                                  {"--d-model", "16"},
                                                  {"--layers", "1"},
                                                  {"--held-out", "20"}};
    for (const auto& [name, value] : more) options[name] = value;
    std::vector<std::string> all = {"train"};
    for (const auto& [name, value] : options) {
      all.push_back(name);
      if (!value.empty()) all.push_back(value);
    }
    return all;
  }
  std::string bytes(const std::string& name) const { return read_bytes(file(name)); }

  // The steps and error rates of a curve, which do not depend on the clock.
  std::vector<std::pair<int64_t, double>> curve(const std::string& out) const {
    std::vector<std::pair<int64_t, double>> points;
    std::ifstream lines(file(out + "/curve.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto point = nlohmann::json::parse(line);
      points.emplace_back(point.at("step"), point.at("phoneme_error_rate"));
    }
    return points;
  }

  // Starts training, sends it `signal` once it has written a checkpoint, and returns its exit
  // status, or 128 + the signal's number if the signal killed it. On a busy machine it may be over
  // before the signal; then it starts anew.
  int interrupt(const std::string& out, int signal,
                const std::map<std::string, std::string>& more = {}) {
    while (true) {
      const pid_t child = start(out, more);
      while (!fs::exists(file(out + "/checkpoint.safetensors")) && !has_ended(child)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      kill(child, signal);
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child) << bytes("interrupted");
      if (!fs::exists(file(out + "/model.safetensors"))) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      fs::remove_all(file(out));
    }
  }

  // Starts training, with its output in the file `interrupted`.
  pid_t start(const std::string& out, const std::map<std::string, std::string>& more) {
    auto words = command(out, more);
    words.insert(words.begin(), POSENC_PRONOUNCE);
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string log = file("interrupted");
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, POSENC_PRONOUNCE, &actions, nullptr, arguments.data(), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  // Whether a child has ended; waitpid() still tells how.
  static bool has_ended(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == child;
  }

  const std::string dictionary_ = text_file("dictionary", dictionary_text());
};

TEST_F(Train, Learns) {
  const auto trained = run(command("out"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "20 held-out words: phoneme error rate ",
                      trained.out);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "260 words to learn, 20 held out", trained.err);
  const auto points = curve("out");
  ASSERT_EQ(points.size(), 12u);
  EXPECT_EQ(points.front().first, 20);
  EXPECT_EQ(points.back().first, 240);
  EXPECT_LT(points.back().second, 0.5 * points.front().second);

  const auto model = file("out/model.safetensors");
  const auto said = run({"say", "--model", model, "BAT", "lipo"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "BAT   ", said.out);
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 2);
  EXPECT_EQ(run({"say", "--model", model, "--beams", "3", "bat"}).status, 0);
  const auto best = run({"say", "--model", model, "--n-best", "3", "bat"});
  EXPECT_EQ(best.status, 0) << best.err;
  EXPECT_EQ(std::count(best.out.begin(), best.out.end(), '\n'), 3);
  EXPECT_EQ(std::count(best.out.begin(), best.out.end(), '%'), 3);

  const auto again = run(command("out"));  // nothing is left to do
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out.substr(0, again.out.find('\n')),
            trained.out.substr(0, trained.out.find('\n')));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "resuming after step 240", again.err);
  EXPECT_EQ(curve("out"), points);
}

TEST_F(Train, StoppedOrKilledItGoesOnAsIfNothingHadBeen) {
  ASSERT_EQ(run(command("whole")).status, 0);
  EXPECT_EQ(interrupt("stopped", SIGINT), 128 + SIGINT);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "stopped after step ", bytes("interrupted"));
  EXPECT_EQ(interrupt("killed", SIGKILL), 128 + SIGKILL);
  for (const std::string name : {"stopped", "killed"}) {
    SCOPED_TRACE(name);
    const auto resumed = run(command(name));
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "resuming after step ", resumed.err);
    EXPECT_EQ(bytes(name + "/model.safetensors"), bytes("whole/model.safetensors"));
    EXPECT_EQ(curve(name), curve("whole"));
  }
}

// The sums of the gradients are rounded in another order, and a tiny model amplifies that a little.
TEST_F(Train, SeveralProcessesReachTheSameErrorAsOne) {
  const auto on = [&](const std::string& out, const std::string& ranks) {
    auto words = command(out, {{"--ranks", ranks}});
    words.insert(words.begin(), POSENC_PRONOUNCE);  // which starts itself: not from the fork server
    return run_program(words);
  };
  const auto two = on("two", "2");
  if (two.err.find("--ranks needs posenc::gloo") != std::string::npos) GTEST_SKIP() << two.err;
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "240 steps, 2 processes of ", two.err);
  ASSERT_EQ(run(command("one")).status, 0);
  const auto one_curve = curve("one"), two_curve = curve("two");
  ASSERT_EQ(two_curve.size(), 12u);
  EXPECT_NEAR(two_curve.front().second, one_curve.front().second, 0.02);
  EXPECT_NEAR(two_curve.back().second, one_curve.back().second, 0.05);

  // Stopped on two processes, continued on three, killed or not.
  EXPECT_EQ(interrupt("other", SIGTERM, {{"--ranks", "2"}}), 128 + SIGTERM);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "stopped after step ", bytes("interrupted"));
  const auto three = on("other", "3");
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "resuming after step ", three.err);
  EXPECT_EQ(std::count(three.out.begin(), three.out.end(), '\n'), 2) << "one process writes";
  EXPECT_NEAR(curve("other").back().second, one_curve.back().second, 0.05);
}

TEST_F(Train, ShowsALineAReportInAPipe) {
  const auto result = run(command("out", {{"--steps", "40"}}));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err.find('\r'), std::string::npos);
  int64_t lines = 0;
  for (int64_t step = 2; step <= 40; step += 2) {
    lines += result.err.find("\nstep " + std::to_string(step) + "/40  loss ") != std::string::npos;
  }
  EXPECT_EQ(lines, 20) << result.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, " tokens/s  0:00 left\n", result.err);

  const auto few = run(command("few", {{"--steps", "40"}, {"--reports", "4"}}));
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_EQ(std::count(few.err.begin(), few.err.end(), '/'), 2 * 4) << few.err;  // and tokens/s
}

TEST_F(Train, WritesOverOneLineOnATerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  auto words = command("out", {{"--steps", "40"}});
  std::string line = std::string("exec '") + POSENC_PRONOUNCE + "'";
  for (const auto& word : words) line += " '" + word + "'";
  const std::string path = ptsname(terminal);
  const int held =
      open(path.c_str(), O_RDWR | O_NOCTTY);  // keeps the child's output after it exits
  const auto result = run_program({"/bin/sh", "-c", line + " 2>'" + path + "'"});
  EXPECT_EQ(result.status, 0);
  fcntl(terminal, F_SETFL, O_NONBLOCK);
  std::string shown;
  char part[4096];
  for (ssize_t count; (count = read(terminal, part, sizeof part)) > 0;)
    shown.append(part, static_cast<std::size_t>(count));
  close(held);
  close(terminal);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\r\033[Kstep 10/40  loss ", shown);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\r\033[Kstep 40/40  loss ", shown);
  EXPECT_EQ(shown.find("left\r\n"), std::string::npos) << "the line is not ended";
  EXPECT_EQ(shown.substr(shown.size() - 4), "\r\033[K") << "and is gone at the end";
}

TEST_F(Train, AnotherRunIsNotWrittenOver) {
  ASSERT_EQ(run(command("out")).status, 0);
  const auto before = bytes("out/checkpoint.safetensors");
  expect_error(run(command("out", {{"--seed", "2"}})), "train",
               "contains another run, at step 240 of 240: finish it with its own options");
  expect_error(run(command("out", {{"--steps", "9"}})), "train", "or start over with --fresh");
  EXPECT_EQ(bytes("out/checkpoint.safetensors"), before);
  EXPECT_EQ(run(command("out", {{"--steps", "9"}, {"--fresh", ""}})).status, 0);
  EXPECT_EQ(curve("out").size(), 9u);
  const auto longer = run(command("out", {{"--steps", "12"}}));  // replaces the shorter run
  EXPECT_EQ(longer.status, 0) << longer.err;
  EXPECT_EQ(longer.err.find("resuming"), std::string::npos);
  // A longer run of another seed is no continuation.
  expect_error(run(command("out", {{"--steps", "15"}, {"--seed", "2"}})), "train",
               "contains another run, at step 12 of 12");
}

TEST_F(Train, RefusesWhatItCannotUse) {
  expect_error(run({"train", "--dictionary", file("absent")}), "train", "absent: No such file");
  expect_error(run({"train", "--dictionary", text_file("empty", "")}), "train",
               "must have words of a-z");
  expect_error(run(command("out", {{"--held-out", "280"}})), "train",
               "--held-out must be at least 1 and less than the number of words, 280.");
  expect_error(run(command("out", {{"--d-model", "18"}})), "train",
               "num_heads must divide d_model 18");
  expect_error(run(command("dictionary")), "train", "dictionary: ");
  for (const auto& [name, value] :
       {std::pair("--minutes", "0"), {"--steps", "0"}, {"--rows", "-1"}, {"--step", "3"}}) {
    EXPECT_EQ(run(command("out", {{name, value}})).status, 2) << name;
  }
  EXPECT_EQ(run({"train"}).status, 2);
  EXPECT_FALSE(fs::exists(file("out/checkpoint.safetensors")));
}

class Say : public Train {};

TEST_F(Say, SaysWhatIsWrong) {
  ASSERT_EQ(run(command("out", {{"--steps", "2"}})).status, 0);
  const auto model = file("out/model.safetensors");
  expect_error(run({"say", "--model", file("absent"), "a"}), "say",
               "no such model; train one with posenc-pronounce train");
  expect_error(run({"say", "--model", file("out/checkpoint.safetensors"), "a"}), "say",
               "must be a model that `posenc-pronounce train` saved");
  expect_error(run({"say", "--model", dictionary_, "a"}), "say", "dictionary: ");
  expect_error(run({"say", "--model", model, "bat", ""}), "say", "a word must have letters");
  for (const std::string word : {"na\xc3\xafve", "bat2", "b at"}) {
    expect_error(run({"say", "--model", model, "bat", word}), "say",
                 "a word must be spelt with the letters a-z, which the model has learnt. Got '" +
                     word + "'");
  }
  expect_error(run({"say", "--model", model, std::string(65, 'a')}), "say",
               "at most 64 letters. Got 65");
  EXPECT_EQ(run({"say", "--model", model}).status, 2);
  EXPECT_EQ(run({"say", "--model", model, "--beams", "0", "bat"}).status, 2);

  auto damaged = load_safetensors(model);
  damaged.metadata["pronounce.layers"] = "many";
  save_safetensors(file("damaged"), damaged.tensors, damaged.metadata);
  expect_error(run({"say", "--model", file("damaged"), "bat"}), "say",
               "pronounce.layers must be a size. Got 'many'");
  damaged.metadata["pronounce.layers"] = "2";
  save_safetensors(file("damaged"), damaged.tensors, damaged.metadata);
  expect_error(run({"say", "--model", file("damaged"), "bat"}), "say", "encoder.layers.1");
}

class TestModel : public Train {};

TEST_F(TestModel, MeasuresOnTheWordsThatTrainingHeldOut) {
  const auto trained = run(command("out", {{"--seed", "7"}, {"--steps", "48"}}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto test = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"test", "--model", file("out/model.safetensors"),
                                      "--dictionary", dictionary_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const auto result = test({"--show", "3"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1 + 3 + 2) << result.out;
  EXPECT_EQ(result.out.rfind("word  the model", 0), 0u) << result.out;
  const double rate = curve("out").back().second;  // measured on the same words
  ASSERT_GT(rate, 0.01);
  EXPECT_PRED_FORMAT2(
      ::testing::IsSubstring,
      fmt::format("\n20 held-out words: {:.1f} % of the phonemes wrong, ", 100.0 * rate),
      result.out);

  const auto worse = test({"--show", "0", "--at-most", fmt::format("{}", 100.0 * rate - 0.01)});
  EXPECT_EQ(worse.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "the phoneme error rate must be at most ", worse.err);
  EXPECT_EQ(std::count(worse.out.begin(), worse.out.end(), '\n'), 1) << worse.out;

  const auto other = text_file("other", dictionary_text() + "word W O R D\n");
  expect_error(run({"test", "--model", file("out/model.safetensors"), "--dictionary", other}),
               "test", "that the model was trained on, with 280 words. Got 281");
  expect_error(run({"test", "--model", file("absent"), "--dictionary", other}), "test",
               "no such model; train one with posenc-pronounce train");
  EXPECT_EQ(run({"test"}).status, 2);
}

TEST(Usage, HelpShowsAnExample) {
  for (const std::string name : {"train", "say", "test"}) {
    const auto result = run({name, "--help"});
    EXPECT_EQ(result.status, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Example:\n  posenc-pronounce " + name, result.out);
  }
  EXPECT_EQ(run({"--help"}).status, 0);
}

TEST(Usage, MessagesSayWhatIsMeant) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "posenc-pronounce: A subcommand is required"},
      {{"trian"}, "posenc-pronounce: unexpected argument trian\n"},
      {{"train"}, "posenc-pronounce train: --dictionary is required"},
      {{"train", "--dictionay", "x"}, "posenc-pronounce train: unexpected argument --dictionay\n"},
      {{"train", "--dictionary"}, "--dictionary"},
      {{"train", "--minutes", "nan"}, "--minutes: must be a number from 0.1 to 1440. Got nan"},
      {{"train", "--minutes", "-1"}, "--minutes: must be a number from 0.1 to 1440. Got -1"},
      {{"train", "--minutes", ""}, "must be a number from 0.1 to 1440. Got an empty string"},
      {{"train", "--steps", "0"}, "--steps: must be an integer from 1 to 1000000000. Got 0"},
      {{"train", "--held-out", "0"}, "--held-out: must be an integer from 1 to "},
      {{"train", "--seed", "x"}, "--seed: must be an integer from -9223372036854775808 to "},
      {{"say", "--beams", "0", "a"}, "--beams: must be an integer from 1 to 10000. Got 0"},
      {{"say", "--n-best", "1e3", "a"}, "--n-best: must be an integer from 1 to 10000. Got 1e3"},
  };
  for (const auto& [command, message] : cases) {
    const auto result = run(command);
    EXPECT_EQ(result.status, 2) << message << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, message, result.err);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\nTry: posenc-pronounce", result.err);
  }
}

}  // namespace
}  // namespace posenc::testing
