//===- report.cpp - The page of a plan or a run ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/units.h"
#include "runtime/view/charts.h"
#include "runtime/view/page_style.h"
#include "runtime/view/report.h"
#include "runtime/view/svg.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <set>

namespace boa {
namespace {

class Page {
public:
  explicit Page(const Report &report)
      : report(report), program(*report.program), run(report.runs.front()),
        tokens(double(program.MicroBatch() * program.MicroBatches() * program.model.context)) {}

  std::string Format() {
    const std::string title = absl::StrCat(program.model.name, " on ", program.machine.name);
    absl::StrAppend(&text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>",
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
                    "<title>", Escape(title), " - Boa</title>\n<style>", StyleSheet(),
                    "</style></head>\n<body><main>\n<h1>", Escape(title), "</h1>\n<p>", report.what,
                    ": ", Escape(program.ScheduleInWords()), "; a step of ", FormatCount(tokens),
                    " tokens.</p>\n");
    AddTiles();
    for (const std::string &note : report.notes)
      absl::StrAppend(&text, absl::StartsWith(note, "warning") ? "<p class=\"warning\">" : "<p>",
                      Escape(note), "</p>\n");
    AddLosses();
    AddPlan();
    AddMeasured();
    AddBound();
    AddTimelines();
    AddMemory();
    AddTraffic();
    AddCurve();
    AddWear();
    AddFigures();
    text += "<footer>Written by boa. The page loads nothing: it can be kept and sent as it "
            "is.</footer>\n</main></body></html>\n";
    return std::move(text);
  }

private:
  void Open(const char *name, const std::string &title, const std::string &says) {
    absl::StrAppend(&text, "<section id=\"", name, "\"><h2>", Escape(title), "</h2>\n<p>",
                    Escape(says), "</p>\n");
  }
  void Close() { text += "</section>\n"; }

  void Tile(const std::string &name, const std::string &value, const std::string &note) {
    absl::StrAppend(&text, "<div><dt>", Escape(name), "</dt><dd>", Escape(value),
                    "</dd><dd class=\"note\">", Escape(note), "</dd></div>\n");
  }

  void AddTiles() {
    text += "<dl class=\"tiles\">\n";
    Tile("a step takes", FormatTime(run.seconds), run.name);
    Tile("tokens a second", FormatCount(tokens / run.seconds),
         absl::StrCat(FormatCount(tokens / run.seconds * 86400), " a day"));
    if (const int64_t steps = program.train.steps; steps > 0) // of epochs, they may not be known
      Tile(steps == 1 ? "the step of this run" : "all " + DescribeSteps(program.train),
           FormatTime(run.seconds * double(steps)), "without commits and evaluation");
    if (report.bound_seconds > 0)
      Tile("over the bound", absl::StrFormat("%.2f x", run.seconds / report.bound_seconds),
           "bound by " + report.bound_link);
    double life = 0;
    std::string path;
    for (const PathWear &wear : WearOf(program, report.writes))
      if (wear.life > 0 && (life == 0 || wear.life < life)) {
        life = wear.life;
        path = wear.path;
      }
    if (life > 0)
      Tile("the SSD lasts", FormatSeconds(life), absl::StrCat("day and night: ", path));
    text += "</dl>\n";
  }

  void AddLosses() {
    const std::string picture = DrawLosses(report.losses);
    if (picture.empty())
      return;
    const LossCurve &training = report.losses.training;
    std::string says = "The mean over the targets of a step, in nats.";
    if (training.steps_of_point() > 1)
      absl::StrAppend(&says, " A point is the mean of ", training.steps_of_point(), " steps.");
    if (const int64_t first = training.points().front().first; first > 1)
      absl::StrAppend(&says, " The steps before ", first, " were in other runs. With --metrics, ",
                      "which keeps their losses, a page shows them, too.");
    Open("loss", "The loss", says);
    text += picture;
    Close();
  }

  void AddPlan() {
    if (report.block.empty() && report.reasons.empty())
      return;
    Open("plan", "Plan", "What the plan says, and why. Other choices were simulated, too.");
    if (!report.block.empty())
      absl::StrAppend(&text, "<pre>", Escape(report.block), "</pre>\n");
    if (!report.reasons.empty()) {
      std::vector<std::vector<std::string>> rows;
      for (const SettingReason &reason : report.reasons)
        rows.push_back({reason.setting, reason.value, reason.why});
      absl::StrAppend(&text, "<div class=\"words\">", Table({"setting", "value", "why"}, rows),
                      "</div>\n");
    }
    Close();
  }

  /// The prediction beside the measurement.
  void AddMeasured() {
    if (report.runs.size() < 2)
      return;
    const StepRun &other = report.runs[1];
    Open("measured", "Predicted and measured",
         "The prediction is a simulation with the rates that the machine states.");
    std::vector<std::vector<std::string>> rows;
    auto add = [&](const std::string &what, double mine, double its, auto format) {
      if (mine > 0 || its > 0)
        rows.push_back(
            {what, its > 0 ? format(its) : "-", mine > 0 ? format(mine) : "-",
             its > 0 && mine > 0 ? absl::StrFormat("%+.1f%%", 100 * (mine / its - 1)) : "-"});
    };
    add("a step", run.seconds, other.seconds, FormatTime);
    add("tokens a second", tokens / run.seconds, tokens / other.seconds, FormatCount);
    auto sum = [](const std::map<std::string, int64_t> &roles) {
      double bytes = 0;
      for (const auto &[role, each] : roles)
        bytes += double(each);
      return bytes;
    };
    add("read from SSD", sum(run.moved.read), sum(other.moved.read), FormatBytes);
    add("written to SSD", sum(run.moved.written), sum(other.moved.written), FormatBytes);
    add("copied to the device", sum(run.moved.to_device), sum(other.moved.to_device), FormatBytes);
    add("copied to the host", sum(run.moved.to_host), sum(other.moved.to_host), FormatBytes);
    std::set<std::string> links;
    for (const StepRun *each : {&run, &other})
      for (const auto &[link, seconds] : each->waited)
        links.insert(link);
    auto waited = [](const StepRun &of, const std::string &link) {
      auto found = of.waited.find(link);
      return found == of.waited.end() ? 0 : found->second;
    };
    for (const std::string &link : links)
      add("compute waited for " + link, waited(run, link), waited(other, link), FormatTime);
    text += Table({"", other.name, run.name, "difference"}, rows);
    Close();
  }

  void AddBound() {
    const std::string picture = DrawBound(report);
    if (picture.empty())
      return;
    std::string says =
        report.bound_seconds > 0
            ? absl::StrCat(report.bound_of_machine ? "No plan on this machine is faster than "
                                                   : "No step of this plan is faster than ",
                           FormatTime(report.bound_seconds), ", bound by ", report.bound_link,
                           ". This one takes ", FormatTime(run.seconds), ", ",
                           absl::StrFormat("%.2f", run.seconds / report.bound_seconds),
                           " times that. ")
            : std::string();
    absl::StrAppend(&says, "A bar is the time that a link must work if it never waits and shares "
                           "nothing.");
    Open("bound", "The bound", says);
    text += picture;
    Close();
  }

  void AddTimelines() {
    std::string pictures;
    for (const StepRun &each : report.runs)
      if (const std::string picture = DrawTimeline(program, each); !picture.empty())
        absl::StrAppend(&pictures,
                        report.runs.size() > 1 ? absl::StrCat("<h3>", Escape(each.name), "</h3>\n")
                                               : "",
                        picture);
    if (pictures.empty())
      return;
    Open("timeline", "One step by resource",
         "The height says for which share of a moment a resource is busy. Where all lanes are "
         "low, they wait for each other.");
    text += pictures;
    Close();
  }

  void AddMemory() {
    const std::string picture = DrawMemory(program, run);
    if (picture.empty())
      return;
    Open("memory", "Memory over the step",
         "What lives in a memory is always there. The rest passes through slots, drawn while they "
         "hold something.");
    text += picture;
    Close();
  }

  void AddTraffic() {
    Open("traffic", "What a step moves", absl::StrCat("Bytes by link and role, ", run.name, "."));
    text += DrawTraffic(program, run);
    Close();
  }

  void AddCurve() {
    const std::string picture = DrawCurve(report.curve, program.train.batch);
    if (picture.empty())
      return;
    Open("batch", "Throughput over the batch",
         "The same micro-batch in steps of more sequences, simulated in both orders. Weights and "
         "optimizer states move once a step, however many sequences share them. Dashed lines are "
         "roofs: the rate if compute alone, or the busiest other link alone, took time.");
    text += picture;
    Close();
  }

  void AddWear() {
    const std::vector<PathWear> wears = WearOf(program, report.writes);
    if (wears.empty())
      return;
    Open("wear", "How it wears the SSDs", "At this rate, day and night.");
    std::vector<std::vector<std::string>> rows;
    double step = 0;
    for (const PathWear &wear : wears) {
      step += wear.step;
      rows.push_back({wear.path, FormatBytes(wear.step), FormatBytes(wear.day),
                      wear.endurance > 0 ? FormatEndurance(wear.endurance) : "not said",
                      wear.life > 0 ? FormatSeconds(wear.life) : "-"});
    }
    text += Table({"path", "a step", "a day", "endurance", "lasts"}, rows);
    rows.clear();
    for (const Saving &saving : SavingsOf(program, report.writes))
      rows.push_back({saving.what, FormatBytes(saving.bytes),
                      absl::StrFormat("%.0f%%", 100 * saving.bytes / step)});
    if (!rows.empty())
      text += "<h3>What would save it</h3>\n" +
              Table({"each change alone", "less a step", "of all"}, rows);
    Close();
  }

  void AddFigures() {
    if (report.figures.empty())
      return;
    Open("figures", "All figures", "What --verbose prints.");
    absl::StrAppend(&text, "<pre>", Escape(report.figures), "</pre>\n");
    Close();
  }

  const Report &report;
  const Program &program;
  const StepRun &run;
  const double tokens;
  std::string text;
};

} // namespace

std::string FormatReport(const Report &report) { return Page(report).Format(); }

} // namespace boa
