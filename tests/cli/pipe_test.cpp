// posenc translate in a pipe, as used interactively or by a server: each line is answered as it
// arrives.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "cli/program.h"
#include "models/marian/live.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

constexpr int kPatience = 120'000;  // ms; long, because the machine may be busy

// A running program whose standard input and output we control.
class Conversation {
 public:
  explicit Conversation(const std::vector<std::string>& command) {
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Conversation() {
    end_input();
    ::close(from_);
    if (child_ > 0) ::kill(child_, SIGKILL), wait();
  }

  void say(const std::string& text) {
    EXPECT_EQ(::write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end_input() {
    if (to_ >= 0) ::close(to_);
    to_ = -1;
  }
  /// The next line of output; "" if none comes.
  std::string line() {
    while (heard_.find('\n') == std::string::npos) {
      pollfd poll_for{from_, POLLIN, 0};
      char part[4096];
      if (::poll(&poll_for, 1, kPatience) <= 0) return "";
      const ssize_t count = ::read(from_, part, sizeof part);
      if (count <= 0) return "";
      heard_.append(part, static_cast<std::size_t>(count));
    }
    const auto end = heard_.find('\n') + 1;
    const auto result = heard_.substr(0, end);
    heard_.erase(0, end);
    return result;
  }
  /// What came after the last line.
  const std::string& rest() const { return heard_; }
  void signal(int number) const { EXPECT_EQ(::kill(child_, number), 0); }
  int wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  std::string heard_;
};

class Pipe : public InFolder {
 protected:
  std::vector<std::string> command() const {
    return {POSENC_CLI, "translate", "--model", marian_path("shared"), "--threads", "1"};
  }
  std::string of_a_file(const std::string& lines) const {
    auto all = command();
    all.push_back(text_file("lines", lines));
    const auto result = run_program(all);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
};

TEST_F(Pipe, EachLineIsAnsweredBeforeTheNext) {
  const auto expected = of_a_file("seven\n\nfive hundred\nsix\n");
  Conversation talk(command());
  std::string answers;
  for (const std::string line : {"seven\n", "\n", "five hundred\n"}) {
    talk.say(line);
    answers += talk.line();
  }
  talk.say("si");  // a line in two parts, without a newline
  talk.say("x");
  talk.end_input();
  answers += talk.line();
  EXPECT_EQ(talk.wait(), 0);
  EXPECT_EQ(answers, expected);
}

TEST_F(Pipe, TranslatesAvailableLinesTogether) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += i % 7 == 0 ? "\r\n" : "two hundred and five\n";
  lines.append(200'000, ' ');  // more than a pipe holds
  lines += "nine\nten";
  const auto path = text_file("all", lines);
  std::string shell = "cat " + path + " |";
  for (const auto& word : command()) shell += " " + word;
  const auto piped = run_program({"/bin/sh", "-c", shell});
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(piped.out, of_a_file(lines));
}

// They arrive together, so that they are read together.
TEST_F(Pipe, GoodLinesAreAnsweredBeforeABadOneIsRefused) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += i % 3 == 0 ? "seven\n" : "five hundred\n";
  const auto expected = of_a_file(lines);
  Conversation talk(command());
  talk.say(lines + "th\xffree\n");
  std::string answers;
  for (int i = 0; i < 100; ++i) answers += talk.line();
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(talk.wait(), 1);
}

// The output is the whole file's up to a line, and the status that of the signal.
TEST_F(Pipe, ASignalEndsAFileAfterWholeLines) {
  std::string lines;
  for (int i = 0; i < 4000; ++i) lines += i % 2 == 0 ? "two hundred and five\n" : "seven\n";
  for (const int signal : {SIGINT, SIGTERM}) {
    auto all = command();
    all.insert(all.end(), {"--batch", "64", text_file("lines", lines)});
    Conversation talk(all);
    std::string answers = talk.line();
    EXPECT_NE(answers, "");
    talk.signal(signal);
    for (auto line = talk.line(); !line.empty(); line = talk.line()) answers += line;
    EXPECT_EQ(talk.wait(), 128 + signal);
    const auto count = std::count(answers.begin(), answers.end(), '\n');
    EXPECT_LT(count, 4000) << "it was too late";
    EXPECT_EQ(talk.rest(), "") << "a part of a line";
    std::string expected, first = of_a_file("two hundred and five\nseven\n");
    while (expected.size() < answers.size()) expected += first;
    EXPECT_EQ(expected.substr(0, answers.size()), answers);
  }
}

TEST_F(Pipe, ThreadsBeyondTheProcessorsAreNotStarted) {
  const auto expected = of_a_file("seven\nsix\n");
  auto all = command();
  all.back() = "100000";
  all.push_back(file("lines"));
  const auto result = run_program(all);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, expected);
}

TEST_F(Pipe, InputThatIsClosedOrAFolderIsRefused) {
  std::string shell;
  for (const auto& word : command()) shell += word + " ";
  for (const std::string from : {"<&-", "</"}) {
    expect_refused(run_program({"/bin/sh", "-c", shell + from}), "translate",
                   "standard input: after line 0: cannot be read: ");
  }
}

}  // namespace
}  // namespace posenc::testing
